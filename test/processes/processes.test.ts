import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { newFolder } from "../behaviour/stores.ts";
import { end, Fleet } from "./fleet.ts";
import { assertShared } from "./sharing.ts";

describe("real processes on one SQLite file", () => {
  test("a process that only enqueues and waits stays until its calls have ended", async () => {
    const folder = newFolder();
    const source = new URL("../../src/index.ts", import.meta.url).href;
    const program = `
      import { createEscapement, defineJob } from ${JSON.stringify(source)};
      const app = createEscapement({ store: "sqlite:app.db" });
      const { id } = await app.enqueue(defineJob({ name: "nobody" }), 1);
      app.result(id, { timeout: "2s" }).catch(({ code }) => console.log(code));`;
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--input-type=module-typescript", "-e", program],
      { cwd: folder },
    );
    assert.equal(stdout.trim(), "result-timeout");
  });

  test("four processes at once dispatch each job exactly once [K1, K11]", async () => {
    await assertShared();
  });

  test("killed in the middle: at-least-once runs again elsewhere, at-most-once is lost and says so [A1, A3]", async () => {
    await using fleet = new Fleet({ lease: 4_000 });
    const victim = await fleet.start();
    const again = await fleet.client.enqueue(fleet.atLeastOnce, { ms: 3_000, how: "wait" });
    const once = await fleet.client.enqueue(fleet.atMostOnce, { ms: 60_000, how: "wait" });
    await fleet.until("both have started", () => fleet.starts().length === 2);
    await end(victim);
    await fleet.start();
    await fleet.until("the one has succeeded", async () => (await fleet.state(again.id)) === "succeeded");
    await fleet.until("the other is lost", async () => (await fleet.state(once.id)) === "lost");
    assert.deepEqual(
      fleet.starts(again.id).map(({ token }) => token),
      [1, 2],
    );
    assert.equal(fleet.starts(once.id).length, 1);
    assert.equal((await fleet.client.get(once.id))?.reason, "its lease ran out");
  });

  test("a handler that blocks the event loop for several leases keeps its job", async () => {
    await using fleet = new Fleet({ lease: 3_000 });
    await Promise.all([fleet.start(), fleet.start()]);
    const blocking = await fleet.client.enqueue(fleet.atLeastOnce, { ms: 9_000, how: "block" });
    await fleet.until("it has ended", async () => (await fleet.state(blocking.id)) === "succeeded");
    const job = await fleet.client.get(blocking.id);
    assert.deepEqual([fleet.starts(blocking.id).length, job?.token, job?.crashes], [1, 1, 0]);
    assert.ok(fleet.lines.every(({ what }) => what !== "stale"));
  });

  test("stopped by the system for several leases and woken: the late outcome is refused", async () => {
    await using fleet = new Fleet({ lease: 3_000 });
    const sleeper = await fleet.start();
    const { id } = await fleet.client.enqueue(fleet.atLeastOnce, { ms: 8_000, how: "wait" });
    await fleet.until("it has started", () => fleet.starts(id).length === 1);
    await fleet.pause(sleeper);
    const other = await fleet.start();
    await fleet.until("it has succeeded elsewhere", async () => (await fleet.state(id)) === "succeeded");
    sleeper.kill("SIGCONT");
    await fleet.until("the late outcome was refused", () => fleet.lines.some(({ what }) => what === "stale"));
    const job = await fleet.client.get(id);
    assert.deepEqual([job?.token, job?.result], [2, `done by ${other.pid}`]);
  });

  test("SIGTERM: the running handler's outcome is recorded, and nothing is left active [A8]", async () => {
    await using fleet = new Fleet({ lease: 4_000, concurrency: 2 });
    const node = await fleet.start();
    const items = Array.from({ length: 6 }, () => ({ input: { ms: 6_000, how: "wait" } as const }));
    await fleet.client.enqueueMany(fleet.atMostOnce, items);
    await fleet.until("two have started", () => fleet.starts().length === 2);
    assert.equal(await end(node, "SIGTERM"), 0);
    const rows = await fleet.client.countBy(["state"]);
    assert.deepEqual(Object.fromEntries(rows.map(({ state, count }) => [state, count])), {
      succeeded: 2,
      waiting: 4,
    });
  });
});
