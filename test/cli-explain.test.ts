import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { commandIn } from "../src/cli/test/advised-command.ts";
import { createEscapement, defineJob } from "../src/index.ts";
import { silentLogger } from "../src/log.ts";
import { TestEscapement } from "../src/testing/kit.ts";
import { VirtualClock } from "../src/testing/virtual-clock.ts";
import { escapement } from "./command.ts";
import { scratchFolder } from "./scratch.ts";

const hour = 3_600_000;
const names = ["nightly", "two words", "-dash"];

const report = defineJob<null>({ name: "report", run: () => {} });
const failing = defineJob<null>({
  name: "failing",
  retry: { attempts: 1 },
  run: () => Promise.reject(new Error("no luck")),
});

/** A store, some hours ago. */
function newScene() {
  const folder = scratchFolder("explain");
  const store = `sqlite:${join(folder, "app.db")}`;
  const start = new Date(Math.floor(Date.now() / hour) * hour - 6 * hour);
  const app = new TestEscapement(
    { store, jobs: [report, failing], log: silentLogger },
    new VirtualClock(start),
  );
  const run = (...args: string[]) => escapement(folder, ...args);
  /** The last line of an explanation, and the command in it. */
  const advice = async (target: string): Promise<{ line: string; words: string[] }> => {
    const { stdout, stderr } = await run("explain", "--store", store, "--", target);
    const line = stdout.trimEnd().split("\n").at(-1) ?? stderr;
    return { line, words: commandIn(line) ?? [] };
  };
  return { store, start, app, run, advice };
}

describe("explain ends with a command that can be pasted", () => {
  test("a skipped occurrence: it is planned, and no other", async () => {
    const { start, app, run, advice } = newScene();
    const at = (hours: number) => new Date(start.getTime() + hours * hour).toISOString();
    await app.start({ roles: ["planner"] });
    for (const key of names) {
      await app.schedule(key, { every: "1h" }, report, null);
      await app.pauseSchedule(key);
    }
    await app.advance("4h");
    for (const key of names) await app.resumeSchedule(key);
    await app.stop();
    for (const key of names) {
      const { line, words } = await advice(`${key}@${at(2)}`);
      assert.match(line, /^to run it after all: escapement schedules backfill --from /);
      const { stdout, stderr } = await run(...words);
      assert.equal(stdout, "1 planned\n", stderr);
      const planned = await advice(`${key}@${at(2)}`);
      assert.doesNotMatch(planned.line, /backfill/, "there is nothing left to plan");
    }
    assert.match((await advice(`nightly@${at(3)}`)).line, /backfill/, "another is still skipped");
  });

  test("a skipped occurrence that a backfill would not plan has no such command", async () => {
    const { start, app, advice } = newScene();
    const at = new Date(start.getTime() + 2 * hour).toISOString();
    await app.start({ roles: ["planner"] });
    for (const key of ["gone", "changed"]) {
      await app.schedule(key, { every: "1h" }, report, null);
      await app.pauseSchedule(key);
    }
    await app.advance("4h");
    for (const key of ["gone", "changed"]) await app.resumeSchedule(key);
    await app.unschedule("gone");
    await app.schedule("changed", { cron: "30 * * * *" }, report, null);
    await app.stop();
    for (const key of ["gone", "changed"]) assert.match((await advice(`${key}@${at}`)).line, /^recorded at/);
  });

  test("a dead or a lost job: it is redriven", async () => {
    const { app, run, advice } = newScene();
    await app.start({ roles: ["worker"] });
    const ids = ["dead", "two words", "-dash"];
    for (const id of ids) await app.enqueue(failing, null, { id });
    await app.advance("1m");
    await app.stop();
    for (const id of ids) {
      const { line, words } = await advice(id);
      assert.match(line, /^ {2}fix what failed, then run it again: escapement jobs redrive /);
      const { stdout, stderr } = await run(...words);
      assert.equal(stdout, "1 redriven\n", stderr);
      assert.doesNotMatch((await advice(id)).line, /redrive/);
    }
  });

  test("a lost job: it may have run, and is redriven", async () => {
    const { store, run, advice } = newScene();
    const exiting = defineJob<{ how: string }>({
      name: "exiting",
      delivery: "at-most-once",
      run: new URL("./handlers/work.ts", import.meta.url),
    });
    await using app = createEscapement({ store, jobs: [exiting], log: silentLogger });
    await app.start();
    await assert.rejects(app.result(await app.enqueue(exiting, { how: "exit" }, { id: "one" })));
    await app.pauseQueue("default");
    const { line, words } = await advice("one");
    assert.match(line, /^ {2}it may have run; if it did not, run it again: escapement jobs redrive /);
    assert.equal((await run(...words)).stdout, "1 redriven\n");
  });
});
