import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Duration } from "../src/duration.ts";
import { createEscapement, type Delivery, defineJob } from "../src/index.ts";
import { type Logger, silentLogger } from "../src/log.ts";
import type { StoreFactory } from "../src/store/opening.ts";
import { sqlite } from "../src/stores/sqlite/index.ts";
import { override } from "../src/testing/override.ts";
import { newFolder } from "./behaviour/stores.ts";

const module = new URL("./handlers/work.ts", import.meta.url);

function define(delivery: Delivery = "at-least-once", timeout: Duration = "5m") {
  return defineJob<{ how: string }>({
    name: "threaded",
    delivery,
    retry: { attempts: 2, backoff: { delay: 1, jitter: 0 } },
    timeout,
    maxCrashes: 2,
    run: module,
  });
}

describe("handlers in a thread", () => {
  async function ending(how: string, delivery?: Delivery, timeout?: Duration, log: Logger = silentLogger) {
    const job = define(delivery, timeout);
    await using app = createEscapement({
      store: `sqlite:${join(newFolder(), "jobs.db")}`,
      jobs: [job],
      poll: 50,
      log,
    });
    await app.start();
    const { id } = await app.enqueue(job, { how });
    await app.result(id, { timeout: "5m" }).catch(() => {});
    const ended = await app.get(id);
    assert.ok(ended);
    return { ...ended, trail: await app.trail(id) };
  }

  test("the result, log lines and progress come back", async () => {
    const job = await ending("return");
    assert.deepEqual([job.state, job.result, job.progress], ["succeeded", { how: "return", id: job.id }, 50]);
    assert.equal(job.trail[0]?.text, "in a thread, try 1");
  });

  test("an error comes back with its name and message, and is retried", async () => {
    const job = await ending("throw");
    assert.deepEqual(
      [job.state, job.attempt, job.error?.name, job.error?.message],
      ["dead", 2, "RangeError", "from the thread"],
    );
  });

  test("a thread that exits is a crash: counted, and poison in the end; the process lives on", async () => {
    const job = await ending("exit");
    assert.deepEqual([job.state, job.crashes], ["dead", 2]);
    assert.match(job.reason ?? "", /poison: its thread ended \(exit code 7\)/);
  });

  test("an error that nobody catches takes the thread down: a crash as well", async () => {
    const job = await ending("stray");
    assert.deepEqual([job.state, job.crashes], ["dead", 2]);
    assert.match(job.reason ?? "", /poison: its thread failed: nobody catches this/);
  });

  test("an at-most-once job whose thread exits is lost", async () => {
    const job = await ending("exit", "at-most-once");
    assert.deepEqual([job.state, job.token], ["lost", 1]);
  });

  test("a thread that never yields is ended after its timeout", async () => {
    const job = await ending("spin", "at-most-once", "3s");
    assert.deepEqual([job.state, job.error?.name], ["dead", "StopReason"]);
    assert.match(job.error?.message ?? "", /timeout/);
  });

  test("threads are used again: many jobs, one after the other, on few of them", async () => {
    const job = defineJob<{ how: string }>({ name: "threaded", run: module });
    await using app = createEscapement({
      store: "memory:",
      jobs: [job],
      concurrency: 2,
      log: silentLogger,
    });
    await app.start();
    const receipts = await app.enqueueMany(
      job,
      Array.from({ length: 20 }, () => ({ input: { how: "return" } })),
    );
    for (const { id } of receipts) await app.result(id, { timeout: "5m" });
    assert.equal(await app.count({ states: ["succeeded"] }), 20);
  });

  test("a result or progress that is no JSON is left out; the job has succeeded all the same", async () => {
    const job = await ending("circular");
    assert.deepEqual([job.state, job.result], ["succeeded", null]);
    assert.match(job.reason ?? "", /result not kept: it cannot be written as JSON/);
  });

  test("what JSON would lose is neither a result nor progress, and the log says so", async () => {
    const warnings: string[] = [];
    const log = { ...silentLogger, warn: (_: object, line: string) => void warnings.push(line) };
    const job = await ending("map", undefined, undefined, log);
    assert.deepEqual([job.state, job.result, job.progress], ["succeeded", null, 50]);
    assert.match(job.reason ?? "", /result not kept: JSON would lose a Map at "counts"/);
    assert.equal(warnings.filter((line) => /progress of job .* is not kept: .* a Map/.test(line)).length, 1);
  });

  test("a handler in a thread enqueues and asks through the main thread", async () => {
    const { id, state, result } = await ending("enqueue");
    assert.equal(state, "succeeded");
    assert.deepEqual(result, {
      receipt: { id: `${id}/1`, outcome: "added" },
      many: [{ id: `${id}/2`, outcome: "added" }],
      refused: "unknown-job",
      seen: "threaded",
    });
  });

  test("effectively-once is refused in a thread, where there is no tx", async () => {
    const job = define("effectively-once");
    await using app = createEscapement({ store: "memory:", jobs: [job], log: silentLogger });
    await assert.rejects(app.start(), { code: "delivery-unsupported" });
  });
});

test("when the heartbeat's thread dies, leases are kept from the main loop, and a stop still ends", async () => {
  const warnings: string[] = [];
  const inner = sqlite(join(newFolder(), "jobs.db"));
  const store: StoreFactory = {
    async open(context) {
      const opened = await inner.open(context);
      const module = new URL("./handlers/dying-store.ts", import.meta.url).href;
      return override(opened, { address: { module, options: opened.address?.options } });
    },
  };
  const job = defineJob<null>({
    name: "long",
    run: () => new Promise<void>((resolve) => setTimeout(resolve, 9_000)),
  });
  const log = { ...silentLogger, warn: (_: object, text: string) => void warnings.push(text) };
  await using app = createEscapement({ store, jobs: [job], lease: "5s", log });
  await app.start();
  const { id } = await app.enqueue(job, null);
  await app.result(id, { timeout: "5m" });
  const ended = await app.get(id);
  assert.deepEqual([ended?.state, ended?.token, ended?.crashes], ["succeeded", 1, 0]);
  assert.match(warnings.join(), /leases are renewed from the main loop/);
});

test("a handler whose file is missing is found at the start, not by its jobs", async () => {
  const job = defineJob({ name: "misspelt", run: new URL("./handlers/wrok.ts", import.meta.url) });
  await using app = createEscapement({
    store: `sqlite:${join(newFolder(), "jobs.db")}`,
    jobs: [job],
    log: silentLogger,
  });
  await assert.rejects(app.start(), { code: "invalid-option", message: /job "misspelt".*wrok\.ts/ });
  await app.start({ roles: ["planner"] });
});
