import assert from "node:assert/strict";
import { leaseMs, named } from "./claimer.ts";
import { assertAbout, type ConformanceTest, hour, later, minute, newJob, retry, succeed } from "./scene.ts";

const keyed = [named("work", { concurrency: 2 })];
const rated = [named("work", { rate: { limit: 2, perMs: hour } })];

export function limitTests(test: ConformanceTest): void {
  test("a paused queue gives nothing until it is resumed, and other queues go on", async (scene) => {
    await scene.store.configureQueue({ queue: "p", paused: true });
    await scene.add(newJob("a", { queue: "p", priority: 9 }), newJob("b"));
    const claimer = scene.claimer();
    const answer = await claimer.claim();
    assert.deepEqual(
      answer.jobs.map(({ id }) => id),
      ["b"],
    );
    assert.equal(answer.nextAt, null);
    await scene.store.configureQueue({ queue: "p", paused: false });
    assert.deepEqual(await claimer.ids(), ["a"]);
  });

  test("pausing does not touch jobs that are active", async (scene) => {
    await scene.add(newJob("a"));
    const claimer = scene.claimer();
    const claimed = await claimer.one();
    await scene.store.configureQueue({ queue: "default", paused: true, concurrency: 1 });
    assert.equal((await claimer.extend(claimed)).outcome, "extended");
    assert.equal((await claimer.finish(claimed, succeed)).outcome, "written");
  });

  test("a queue's concurrency counts active jobs over all nodes", async (scene) => {
    await scene.store.configureQueue({ queue: "default", concurrency: 3 });
    await scene.add(...["a", "b", "c", "d", "e"].map((id) => newJob(id)), newJob("free", { queue: "other" }));
    const [one, two] = [scene.claimer("one"), scene.claimer("two")];
    const [first] = await one.take({ limit: 2 });
    assert.deepEqual(await two.ids(), ["c", "free"]);
    assert.equal((await two.claim()).nextAt, null, "only an end opens the way");
    assert(first);
    await one.finish(first, retry(hour));
    assert.deepEqual(await two.ids(), ["d"]);
  });

  test("a lease that ran out frees its place once it is reaped", async (scene) => {
    await scene.store.configureQueue({ queue: "default", concurrency: 1 });
    await scene.add(newJob("a", { delivery: "at-most-once" }), newJob("b"));
    await scene.claimer("one").one();
    await scene.advance(2 * leaseMs);
    assert.deepEqual(await scene.claimer("two").ids(), []);
    await scene.reapAll();
    assert.deepEqual(await scene.claimer("three").ids(), ["b"]);
  });

  test("limits of a queue change while jobs run, and null takes them away", async (scene) => {
    await scene.store.configureQueue({ queue: "default", concurrency: 1 });
    await scene.add(newJob("a"), newJob("b"), newJob("c"), newJob("d"));
    const claimer = scene.claimer();
    assert.deepEqual(await claimer.ids(), ["a"]);
    await scene.store.configureQueue({ queue: "default", concurrency: 2 });
    assert.deepEqual(await claimer.ids(), ["b"]);
    await scene.store.configureQueue({ queue: "default", concurrency: 1 });
    assert.deepEqual(await claimer.ids(), []);
    await scene.store.configureQueue({ queue: "default", concurrency: null });
    assert.deepEqual(await claimer.ids(), ["c", "d"]);
  });

  test("a queue's rate lets so many claims go in a window that starts with the first of them", async (scene) => {
    await scene.store.configureQueue({ queue: "default", rate: { limit: 2, perMs: hour } });
    await scene.advance(30 * minute);
    await scene.add(newJob("a"), newJob("b"), newJob("c"));
    const claimer = scene.claimer();
    const first = await claimer.claim();
    assert.deepEqual(
      first.jobs.map(({ id }) => id),
      ["a", "b"],
    );
    assertAbout(first.nextAt, later(first.now, hour), "nextAt");
    await scene.advance(50 * minute);
    assert.deepEqual(await claimer.ids(), []);
    await scene.advance(20 * minute);
    assert.deepEqual(await claimer.ids(), ["c"]);
  });

  test("a rate that is lowered below what was used holds its queue back until the window ends, and no other", async (scene) => {
    await scene.store.configureQueue({ queue: "default", rate: { limit: 3, perMs: hour } });
    const claimer = scene.claimer();
    const names = ["work", "other"].map((name) => named(name));
    await scene.add(newJob("a"), newJob("b", { name: "other" }), newJob("c"));
    assert.deepEqual(await claimer.ids({ names }), ["a", "b", "c"]);
    await scene.store.configureQueue({ queue: "default", rate: { limit: 1, perMs: hour } });
    await scene.add(newJob("d"), newJob("e", { name: "other" }), newJob("f", { queue: "free" }));
    assert.deepEqual(await claimer.ids({ names }), ["f"]);
    await scene.advance(2 * hour);
    assert.deepEqual(await claimer.ids({ names }), ["d"]);
  });

  test("claims count for a rate whatever becomes of them", async (scene) => {
    await scene.store.configureQueue({ queue: "default", rate: { limit: 1, perMs: hour } });
    await scene.add(newJob("a"), newJob("b"));
    const claimer = scene.claimer();
    await claimer.finish(await claimer.one(), { kind: "release" });
    assert.deepEqual(await claimer.ids(), []);
    await scene.advance(2 * hour);
    assert.deepEqual(await claimer.ids(), ["a"]);
  });

  test("a paused queue with free limits stays paused, and a resumed one obeys them", async (scene) => {
    const rate = { limit: 5, perMs: hour };
    await scene.store.configureQueue({ queue: "default", paused: true, concurrency: 1, rate });
    await scene.add(newJob("a"), newJob("b"));
    assert.deepEqual(await scene.claimer().ids(), []);
    await scene.store.configureQueue({ queue: "default", paused: false });
    assert.deepEqual(await scene.claimer("two").ids(), ["a"]);
  });
}

export function usageTests(test: ConformanceTest): void {
  const none = { activeInQueue: 0, activeUnderKey: 0, queueWindow: null, keyWindow: null };
  const asked = { queue: "default", concurrencyKey: null, rateKey: null };

  test("nothing is used of a queue or a key that nobody has heard of", async (scene) => {
    const { now, ...usage } = await scene.store.usage({ queue: "?", concurrencyKey: "c", rateKey: "r" });
    assert.deepEqual(usage, none);
    assertAbout(now, await scene.now(), "now");
  });

  test("usage counts active jobs of a queue and of a key, and those of the relay for neither", async (scene) => {
    const keyedJob = (id: string) => newJob(id, { concurrencyKey: "k" });
    await scene.add(
      keyedJob("a"),
      keyedJob("b"),
      newJob("c"),
      newJob("d", { queue: "other" }),
      keyedJob("e"),
    );
    await scene.add(newJob("published", { relayed: true, slot: 1, concurrencyKey: "k" }));
    const [grant] = await scene.store.acquirePartitions({ owner: "o", leaseMs, partitions: 1, want: 1 });
    const { epoch = 0, partition = 0 } = grant ?? {};
    const name = [{ id: "published", version: 1 }];
    await scene.store.checkpoint({
      owner: "o",
      partition,
      epoch,
      settled: [],
      mark: null,
      name,
      aheadMs: 0,
    });
    const used = async (queue: string, concurrencyKey: string | null): Promise<number[]> => {
      const usage = await scene.store.usage({ queue, concurrencyKey, rateKey: null });
      return [usage.activeInQueue, usage.activeUnderKey];
    };
    assert.deepEqual(await used("default", "k"), [0, 0]);
    const claimer = scene.claimer();
    const claimed = await claimer.take({ names: keyed });
    assert.deepEqual(await used("default", "k"), [3, 2]);
    assert.deepEqual(await used("other", null), [1, 0]);
    assert.deepEqual(await used("other", "another"), [1, 0]);
    for (const job of claimed) await claimer.finish(job, succeed);
    assert.deepEqual(await used("default", "k"), [0, 0]);
  });

  test("usage shows how far the windows of a queue and of a key are used, until they are over", async (scene) => {
    await scene.store.configureQueue({ queue: "default", rate: { limit: 5, perMs: 2 * hour } });
    await scene.add(...["a", "b", "c"].map((id) => newJob(id, { rateKey: "r" })), newJob("plain"));
    const { now } = await scene.claimer().claim({ names: rated });
    const { queueWindow, keyWindow } = await scene.store.usage({ ...asked, rateKey: "r" });
    assert.deepEqual([queueWindow?.used, queueWindow?.perMs], [3, 2 * hour]);
    assert.deepEqual([keyWindow?.used, keyWindow?.perMs], [2, hour]);
    assertAbout(queueWindow?.startedAt ?? null, now);
    assertAbout(keyWindow?.startedAt ?? null, now);
    assert.equal((await scene.store.usage({ ...asked, rateKey: "another" })).keyWindow, null);
    await scene.advance(90 * minute);
    const later = await scene.store.usage({ ...asked, rateKey: "r" });
    assert.deepEqual([later.queueWindow?.used, later.keyWindow], [3, null]);
    await scene.advance(hour);
    assert.equal((await scene.store.usage(asked)).queueWindow, null);
  });
}

export function keyLimitTests(test: ConformanceTest): void {
  test("a key's concurrency counts its active jobs over all nodes, and other keys go on", async (scene) => {
    const on = (id: string, concurrencyKey: string) => newJob(id, { concurrencyKey });
    await scene.add(on("a1", "a"), on("a2", "a"), on("a3", "a"), on("b1", "b"), newJob("plain"));
    const one = scene.claimer("one");
    const [first] = await one.take({ names: keyed });
    const two = scene.claimer("two");
    assert.deepEqual(await two.ids({ names: keyed }), []);
    assert(first);
    assert.equal(first.id, "a1");
    await one.finish(first, succeed);
    assert.deepEqual(await two.ids({ names: keyed }), ["a3"]);
  });

  test("a key without a limit on the claimer's side lets everything go", async (scene) => {
    await scene.add(...["a", "b", "c"].map((id) => newJob(id, { concurrencyKey: "k", rateKey: "r" })));
    assert.deepEqual(await scene.claimer().ids(), ["a", "b", "c"]);
  });

  test("a key's rate opens again with its window, and nextAt says when", async (scene) => {
    await scene.add(
      ...["a", "b", "c"].map((id) => newJob(id, { rateKey: "r" })),
      newJob("s", { rateKey: "s" }),
    );
    const claimer = scene.claimer();
    const first = await claimer.claim({ names: rated });
    assert.deepEqual(
      first.jobs.map(({ id }) => id),
      ["a", "b", "s"],
    );
    assertAbout(first.nextAt, later(first.now, hour), "nextAt");
    await scene.advance(50 * minute);
    assert.deepEqual(await claimer.ids({ names: rated }), []);
    await scene.advance(20 * minute);
    assert.deepEqual(await claimer.ids({ names: rated }), ["c"]);
  });

  test("a lane goes in its own order: where its first due job may not go, the lane waits", async (scene) => {
    const laned = (id: string, changes: object = {}) => newJob(id, { concurrencyKey: "k", ...changes });
    await scene.store.configureQueue({ queue: "p", paused: true });
    await scene.add(laned("head", { queue: "p" }), laned("behind"), newJob("plain"));
    const claimer = scene.claimer();
    assert.deepEqual(await claimer.ids({ names: keyed }), ["plain"]);
    await scene.store.configureQueue({ queue: "p", paused: false });
    assert.deepEqual(await claimer.ids({ names: keyed }), ["head", "behind"]);
  });

  test("a lane whose first due job has a name the claimer does not run waits too", async (scene) => {
    await scene.add(
      newJob("head", { name: "other", concurrencyKey: "k" }),
      newJob("behind", { concurrencyKey: "k" }),
    );
    const claimer = scene.claimer();
    assert.deepEqual(await claimer.ids({ names: keyed }), []);
    assert.deepEqual(await claimer.ids({ names: [...keyed, named("other")] }), ["head", "behind"]);
  });

  test("a lane is led by what is due: a job for later, or one that expired, holds nobody up", async (scene) => {
    const laned = (id: string, changes: object = {}) => newJob(id, { concurrencyKey: "k", ...changes });
    await scene.add(
      laned("expired", { expireInMs: minute, priority: 9 }),
      laned("later", { delayMs: 9 * hour, priority: 8 }),
    );
    await scene.advance(hour);
    await scene.add(laned("due"));
    assert.deepEqual(await scene.claimer().ids({ names: [named("work", { concurrency: 1 })] }), ["due"]);
  });

  test("a higher priority comes to the head of its lane", async (scene) => {
    const names = [named("work", { concurrency: 1 })];
    const laned = (id: string, priority: number) => newJob(id, { concurrencyKey: "k", priority });
    await scene.add(laned("low", 0), laned("high", 5));
    const claimer = scene.claimer();
    assert.deepEqual(await claimer.ids({ names }), ["high"]);
  });

  test("both keys bind: the lane is the concurrency key's, and the rate still counts", async (scene) => {
    const names = [named("work", { concurrency: 5, rate: { limit: 1, perMs: hour } })];
    const both = (id: string, rateKey: string) => newJob(id, { concurrencyKey: "k", rateKey });
    await scene.add(both("a", "r"), both("b", "r"), both("c", "s"));
    const claimer = scene.claimer();
    assert.deepEqual(await claimer.ids({ names }), ["a"]);
    await scene.advance(2 * hour);
    assert.deepEqual(await claimer.ids({ names }), ["b", "c"]);
  });

  test("the same text as a concurrency key and as a rate key makes two lanes", async (scene) => {
    const names = [named("work", { concurrency: 1, rate: { limit: 1, perMs: hour } })];
    await scene.add(newJob("a", { concurrencyKey: "k" }), newJob("b", { rateKey: "k" }));
    assert.deepEqual(await scene.claimer().ids({ names }), ["a", "b"]);
  });

  test("an update moves a waiting job to another lane", async (scene) => {
    const names = [named("work", { concurrency: 1 })];
    await scene.add(newJob("a", { concurrencyKey: "k" }), newJob("b", { concurrencyKey: "k" }));
    await scene.store.update({ id: "b", concurrencyKey: null });
    assert.deepEqual(await scene.claimer().ids({ names }), ["a", "b"]);
  });

  test("a key with many waiting jobs leaves the limit of a claim to the others", async (scene) => {
    const names = [named("work", { concurrency: 1 })];
    const crowd = Array.from({ length: 500 }, (_, n) =>
      newJob(`k${n}`, { concurrencyKey: "k", priority: 9 }),
    );
    await scene.add(...crowd, newJob("plain"), newJob("keyed", { concurrencyKey: "other" }));
    assert.deepEqual(await scene.claimer().ids({ names, limit: 3 }), ["k0", "plain", "keyed"]);
  });
}
