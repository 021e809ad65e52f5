import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { ProgressBar } from "../src/cli/progress-bar.ts";
import { createEscapement, defineJob } from "../src/index.ts";
import { silentLogger } from "../src/log.ts";
import { createTestEscapement } from "../src/testing/kit.ts";
import { until } from "../src/testing/until.ts";
import { configure, escapement } from "./command.ts";
import { scratchFolder } from "./scratch.ts";
import { noTerminal, onTerminal, plainText } from "./terminal.ts";

const report = defineJob<undefined>({ name: "report", run: () => {} });
const minute = 60_000;

/** A store with a schedule that fires every minute, and the arguments that plan so many of its past occurrences. */
async function newSchedule(): Promise<{ folder: string; backfill: (count: number) => string[] }> {
  const folder = scratchFolder("progress");
  configure(folder, 'defineJob({ name: "report" })');
  const store = `sqlite:${join(folder, "app.db")}`;
  await using app = createEscapement({ store, jobs: [report], log: silentLogger });
  await app.schedule("minutely", { every: "1m" }, report);
  const latest = Math.floor(Date.now() / minute) * minute - minute;
  const at = (ago: number) => new Date(latest - ago * minute).toISOString();
  const backfill = (count: number) => [
    "schedules",
    "backfill",
    "minutely",
    "--yes",
    "--from",
    at(count - 1),
    "--to",
    at(0),
  ];
  return { folder, backfill };
}

describe("what takes long shows how far it is on a terminal, and nothing elsewhere", () => {
  test("a backfill of several steps", { skip: noTerminal }, async () => {
    const { folder, backfill } = await newSchedule();
    const shown = await onTerminal(folder, backfill(1_200));
    assert.match(plainText(shown.output), /\[█*░+\] planning: \d+ of 1200 occurrences/);
    assert.match(shown.output, /1200 planned\n$/);
    const piped = await escapement(folder, ...backfill(1_300));
    assert.deepEqual([piped.stdout, piped.stderr], ["100 planned\n", ""]);
  });

  test("a recount, which says how many jobs it counts", { skip: noTerminal }, async () => {
    const { folder, backfill } = await newSchedule();
    await escapement(folder, ...backfill(3));
    const shown = await onTerminal(folder, ["doctor", "--recount"]);
    assert.match(plainText(shown.output), /counting 3 jobs: \d+s/);
    const piped = await escapement(folder, "doctor", "--recount");
    assert.equal(piped.stderr, "");
    assert.doesNotMatch(piped.stdout, /counting/);
    assert.doesNotMatch((await onTerminal(folder, ["doctor"])).output, /counting/);
  });

  test("a migration, unless the schema is up to date", { skip: noTerminal }, async () => {
    const folder = scratchFolder("progress");
    const migrate = ["migrate", "--store", "sqlite:app.db"];
    const shown = await onTerminal(folder, migrate);
    assert.match(plainText(shown.output), /applying \d+ migrations?: \d+s/);
    assert.match(shown.output, /applied 0001-/);
    assert.doesNotMatch((await onTerminal(folder, migrate)).output, /applying/);
    const piped = await escapement(folder, "migrate", "--store", "sqlite:other.db");
    assert.deepEqual([piped.code, piped.stderr], [0, ""]);
  });
});

test("work of unknown length shows its time each second until it ends", async () => {
  const written: string[] = [];
  const stream = { isTTY: true, columns: 80, write: (text: string) => written.push(text) };
  const bar = new ProgressBar(true, stream as unknown as NodeJS.WriteStream);
  const shown = (): string[] => plainText(written.join("")).split("\n");
  const result = await bar.during("reading", async () => {
    await until("a second is shown", () => shown().includes("reading: 1s"));
    return "read";
  });
  assert.equal(result, "read");
  assert.deepEqual([shown()[1], shown().at(-1)], ["reading: 0s", ""], "it is gone at the end");
});

test("a backfill says how far it is after each step", async () => {
  await using app = await createTestEscapement({ jobs: [report] });
  await app.schedule("minutely", { every: "1m" }, report);
  const steps: number[][] = [];
  const now = app.clock.now();
  await app.backfill("minutely", new Date(now - 1_100 * minute), new Date(now), {
    onProgress: (...step) => void steps.push(step),
  });
  const total = steps[0]?.[1];
  assert.deepEqual([...new Set(steps.map(([done]) => done))], [0, 500, 1_000, total]);
  await assert.rejects(app.backfill("minutely", new Date(now), new Date(now), { progress: true } as object), {
    code: "invalid-option",
  });
});
