import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { noFigures } from "../../src/history.ts";
import { createEscapement, defineJob, type HistoryPoint } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { StoreFactory } from "../../src/store/opening.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { newJob } from "../../src/testing/conformance/scene.ts";
import { createTestEscapement, TestEscapement } from "../../src/testing/kit.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { FaultyStore } from "./faulty.ts";
import { ScriptedTransport } from "./scripted-transport.ts";
import { onEveryStore } from "./stores.ts";

/** Longer than any process waits before it writes. */
const written = "13s";
const log = silentLogger;

/** One point for each name, over all steps. */
async function totals(app: TestEscapement): Promise<Map<string | undefined, HistoryPoint>> {
  const { points } = await app.history({ step: "hour", by: "name" });
  return new Map(points.map((point) => [point.name, point]));
}

const fine = defineJob<null>({ name: "fine", queue: "mail", run: () => "done" });
const flaky = defineJob<null>({
  name: "flaky",
  retry: { attempts: 2, backoff: { type: "fixed", delay: "1s", jitter: 0 } },
  run() {
    throw new Error("no");
  },
});

onEveryStore("history", (bed) => {
  test("what ended is counted by queue and name, with how late it started and how long it took", async () => {
    const clock = new VirtualClock(new Date("2026-11-15T10:00:05Z"));
    await using app = new TestEscapement({ store: bed.store(), jobs: [fine, flaky], log }, clock);
    const early = await app.enqueue(fine, null);
    await app.enqueue(fine, null, { delay: "1h" });
    await app.enqueue(flaky, null);
    // Nobody runs it for a while.
    await clock.advance(5_000);
    await app.start();
    await app.result(early.id);
    await app.advance(written);
    const { points } = await app.history({ by: "queue" });
    const [point] = points.filter(({ queue }) => queue === "mail");
    assert.equal(points.length, 2);
    assert.equal(point?.at.toISOString(), "2026-11-15T10:00:00.000Z");
    assert.deepEqual([point.succeeded, point.runs, point.late], [1, 1, [0, 0, 0, 1, 0, 0, 0]]);
    assert(point.lateMaxMs >= 5_000 && point.lateSumMs === point.lateMaxMs, `${point.lateMaxMs} ms late`);
    const ends = (await totals(app)).get("flaky");
    assert.deepEqual([ends?.failed, ends?.dead, ends?.runs, ends?.queue], [1, 1, 2, undefined]);
    assert.deepEqual((await app.history({ queue: "mail", name: "flaky" })).points, []);
    await app.advance("61m");
    await app.advance(written);
    assert.equal((await app.history({ queue: "mail", since: new Date(0) })).points.length, 2);
    assert.equal((await app.history({ queue: "mail" })).points.length, 1, "the hour before is left out");
  });

  test("an app that stops writes what it has counted", async () => {
    const store = bed.store();
    const clock = new VirtualClock();
    const first = await createTestEscapement({ store, jobs: [fine], log, clock });
    await first.enqueue(fine, null);
    await first.runUntilIdle();
    await first[Symbol.asyncDispose]();
    await using second = await createTestEscapement({ store, jobs: [fine], log, clock });
    assert.equal((await totals(second)).get("fine")?.succeeded, 1);
  });

  test("duplicates that were prevented are counted, also by a process that only enqueues", async () => {
    const store = bed.store();
    const clock = new VirtualClock();
    const once = defineJob<null>({
      name: "once",
      queue: "mail",
      unique: { key: () => "one", for: "pending" },
      run: () => {},
    });
    const producer = new TestEscapement({ store, jobs: [fine, once], log }, clock);
    for (let n = 0; n < 3; n += 1) await producer.enqueue(fine, null, { id: "the-same" });
    await producer.enqueueMany(once, [{ input: null }, { input: null }]);
    await clock.advance(13_000);
    const { points } = await producer.history({ by: "queue" });
    assert.deepEqual(
      points.map(({ queue, existing, absorbed, stale }) => [queue, existing, absorbed, stale]),
      [["mail", 2, 1, 0]],
    );
    await producer.enqueue(fine, null, { id: "the-same" });
    await producer[Symbol.asyncDispose]();
    await using other = new TestEscapement({ store, jobs: [fine], log }, clock);
    assert.equal((await totals(other)).get("fine")?.existing, 3, "the rest is written when it stops");
  });

  test("what the reaper ended is counted by whoever reaped it", async () => {
    const factory = bed.store();
    const clock = new VirtualClock();
    await using app = new TestEscapement({ store: factory, namespace: "reaped", jobs: [fine], log }, clock);
    const store = await factory.open({ namespace: "reaped", clock, log });
    await store.migrate();
    const jobs = [
      newJob("again", { name: "again" }),
      newJob("poison", { name: "poison", maxCrashes: 1 }),
      newJob("once", { name: "once", delivery: "at-most-once" }),
    ];
    await store.enqueue({ jobs });
    const names = jobs.map(({ name }) => ({ name, concurrency: null, rate: null }));
    const claim = { claimer: "gone", leaseMs: 30_000, queues: null, names, alone: true };
    for (const sequence of [1, 2]) await store.claim({ ...claim, sequence, limit: 3 });
    await app.start({ roles: ["reaper"] });
    await app.advance("2m");
    const ends = await totals(app);
    assert.deepEqual(
      [ends.get("again")?.crashed, ends.get("poison")?.dead, ends.get("once")?.lost],
      [1, 1, 1],
    );
    await store.close();
  });
});

test("a write whose reply is lost is counted once, and one that does not get through comes later", async () => {
  const store = new FaultyStore(memory());
  await using app = await createTestEscapement({ store, jobs: [fine], log });
  store.fail("lose-reply", ["recordHistory"], 1);
  await app.enqueue(fine, null);
  await app.advance(written);
  await app.enqueue(fine, null);
  await app.advance(written);
  await app.advance(written);
  assert.equal((await totals(app)).get("fine")?.succeeded, 2);
  await app.advance("1m");
  store.fail("refuse", ["recordHistory"]);
  await app.enqueue(fine, null);
  await app.advance("5m");
  await app.enqueue(fine, null);
  await app.advance("1m");
  assert.equal((await totals(app)).get("fine")?.succeeded, 2);
  store.heal();
  await app.advance("1m");
  assert.equal((await totals(app)).get("fine")?.succeeded, 4);
  const counts = (await app.history()).points.map(({ succeeded }) => succeeded);
  assert.deepEqual(counts.slice(-2), [1, 1], "each in its own minute");
});

test("an outcome that the store refuses is counted as stale, and as no end", async () => {
  const clock = new VirtualClock();
  const factory = memory();
  const slow = defineJob<null>({
    name: "slow",
    timeout: "10m",
    run: () => new Promise<void>((resolve) => void clock.after(60_000, () => resolve())),
  });
  const store = new FaultyStore(factory);
  await using app = await createTestEscapement({ store, jobs: [slow], log, clock, lease: "10s" });
  let refused = 0;
  app.on("stale", () => {
    refused += 1;
  });
  await app.enqueue(slow, null);
  await app.advance("1s");
  const other = await factory.open({ namespace: app.settings.namespace, clock, log });
  store.fail("refuse", ["extend", "reap"]);
  await app.advance("20s");
  assert.equal((await other.reap({ limit: 10 })).reaped.length, 1);
  await other.cancel({ select: { filter: {}, limit: 10, cursor: null }, reason: null });
  store.heal();
  await app.advance("2m");
  const slowest = (await totals(app)).get("slow");
  assert.deepEqual([refused, slowest?.stale, slowest?.succeeded, slowest?.runs], [1, 1, 0, 0]);
});

test("what a relay published is counted with how late it was, and the canary is not", async () => {
  const clock = new VirtualClock();
  const broker = new ScriptedTransport(clock);
  const pay = defineJob<number>({ name: "pay", route: broker.route() });
  const relay = { partitions: 1, canary: 5_000 };
  await using app = await createTestEscapement({ jobs: [pay], relay, log, clock });
  await app.enqueue(pay, 1, { runAt: new Date(clock.now() - 60_000) });
  await clock.advance(40_000);
  const ends = await totals(app);
  assert.deepEqual([...ends.keys()], ["pay"]);
  const figures = ends.get("pay");
  assert.deepEqual([figures?.succeeded, figures?.runs, figures?.late[5]], [1, 0, 1]);
});

test("where nothing ends, nothing is written; and a process writes at most every few seconds", async () => {
  const store = new FaultyStore(memory());
  await using app = await createTestEscapement({ store, jobs: [fine], log });
  await app.advance("10m");
  assert(!store.calls.includes("recordHistory"));
  for (let n = 0; n < 60; n += 1) {
    await app.enqueue(fine, null);
    await app.advance("1s");
  }
  const writes = store.calls.filter((verb) => verb === "recordHistory").length;
  assert(writes >= 4 && writes <= 8, `${writes} writes in a minute`);
});

describe("how much was due", () => {
  const slow = defineJob<null>({ name: "slow", queue: "post", run: () => {} });
  const jobs = [fine, slow];

  /** A process of its own on the same store, and what it asked. */
  function process(factory: StoreFactory, clock: VirtualClock, metrics: boolean) {
    const store = new FaultyStore(factory);
    const options = metrics ? { metrics: { interval: 10_000 } } : {};
    return { store, app: new TestEscapement({ store, jobs, log, ...options }, clock) };
  }

  const asked = ({ calls }: FaultyStore) => calls.filter((verb) => verb === "depths").length;

  test("is asked at least once a minute by one of the nodes that plan or reap, and kept by queue and for all", async () => {
    const clock = new VirtualClock(new Date("2026-11-15T10:00:05Z"));
    const factory = memory();
    const nodes = Array.from({ length: 3 }, () => process(factory, clock, false));
    const [first] = nodes;
    assert(first);
    for (let n = 0; n < 5; n += 1) await first.app.enqueue(n < 3 ? fine : slow, null);
    for (const { app } of nodes) await app.start({ roles: ["planner", "reaper"] });
    await clock.advance(5 * 60_000);
    const asks = nodes.map(({ store }) => asked(store)).toSorted((a, b) => a - b);
    assert.deepEqual(asks.slice(0, 2), [0, 0]);
    assert([9, 10].includes(asks[2] ?? 0), `${asks}`);
    const all = await first.app.history();
    assert.equal(all.points.length, 5, "no minute is left out");
    assert.deepEqual(new Set(all.points.map(({ dueMax }) => dueMax)), new Set([5]));
    const { points } = await first.app.history({ step: "hour", by: "queue" });
    assert.deepEqual(
      points.map(({ queue, dueMax, succeeded }) => [queue, dueMax, succeeded]),
      [
        ["mail", 3, 0],
        ["post", 2, 0],
      ],
    );
    for (const { app } of nodes) await app[Symbol.asyncDispose]();
  });

  test("is left to a node that counts for its metrics, and to nobody by one that only works", async () => {
    const clock = new VirtualClock();
    const factory = memory();
    const counting = process(factory, clock, true);
    const planning = process(factory, clock, false);
    const working = process(factory, clock, false);
    await working.app.start({ roles: ["worker"], queues: ["none"] });
    await working.app.enqueue(fine, null);
    await clock.advance(5 * 60_000);
    assert.equal(asked(working.store), 0);
    await counting.app.start({ roles: ["worker"], queues: ["none"] });
    await planning.app.start({ roles: ["planner"] });
    await clock.advance(5 * 60_000);
    assert.equal(asked(planning.store), 0);
    assert(asked(counting.store) > 5);
    assert.equal((await planning.app.history()).points.at(-1)?.dueMax, 1);
    for (const { app } of [counting, planning, working]) await app[Symbol.asyncDispose]();
  });

  test("is not written where nothing is due", async () => {
    const store = new FaultyStore(memory());
    await using app = await createTestEscapement({ store, jobs, log });
    await app.enqueue(fine, null, { delay: "1d" });
    await app.advance("10m");
    assert(asked(store) > 5);
    assert(!store.calls.includes("recordHistory"));
  });
});

test("options of history are checked", async () => {
  await using app = createEscapement({ store: memory(), jobs: [fine], log });
  const invalid = { code: "invalid-option" };
  const wrong = [{ step: "day" }, { by: "state" }, { limit: 0 }, { since: "yesterday" }, { unknown: 1 }];
  for (const options of wrong) await assert.rejects(app.history(options as object), invalid);
  const since = new Date();
  await assert.rejects(app.history({ since, until: new Date(since.getTime() - 1) }), invalid);
  await assert.rejects(app.history({ queue: "" }), { code: "invalid-name" });
  assert.deepEqual(await app.history(), { points: [], more: false });
  assert.equal(noFigures.late.length, 7);
});
