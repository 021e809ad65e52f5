import assert from "node:assert/strict";
import { type Claimer, leaseMs, named } from "./claimer.ts";
import { type ConformanceTest, minute, newJob, retry, type Scene, second, succeed } from "./scene.ts";

const crash = { kind: "crash", reason: "gone" } as const;

/** Claims without room for anything: only ahead. */
function ahead(node: Claimer, count: number): Promise<string[]> {
  return node.ids({ limit: 0, ahead: count, names: [named("work", { concurrency: 1 })] });
}

/** Lets every claim of the scene run out and ends it. */
async function reapAll(scene: Scene): Promise<void> {
  await scene.advance(leaseMs + second);
  await scene.store.reap({ limit: 100 });
}

export function aheadTests(test: ConformanceTest): void {
  orderTests(test);
  endTests(test);
  silenceTests(test);
}

function orderTests(test: ConformanceTest): void {
  test("jobs claimed ahead come after the others, in the same order", async (scene) => {
    await scene.add(newJob("b"), newJob("c"), newJob("d"), newJob("a", { priority: 1 }), newJob("e"));
    const node = scene.claimer("node");
    assert.deepEqual(await node.ids({ limit: 1, ahead: 2 }), ["a", "b", "c"]);
    assert.deepEqual(await node.ids({ limit: 0, ahead: 1 }), ["d"]);
    assert.deepEqual(await node.ids({ limit: 2, ahead: 9 }), ["e"]);
    assert.deepEqual(await node.ids({ limit: 0, ahead: 9 }), []);
  });

  test("without room and without ahead nothing is claimed", async (scene) => {
    await scene.add(newJob("a"));
    assert.deepEqual(await ahead(scene.claimer("node"), 0), []);
  });

  test("a claim that is repeated brings what it took ahead again", async (scene) => {
    await scene.add(newJob("a"), newJob("b"), newJob("c"), newJob("d"));
    const params = scene.claimer("node").next({ limit: 1, ahead: 2 });
    const first = await scene.store.claim(params);
    const second = await scene.store.claim(params);
    assert.deepEqual(
      first.jobs.map(({ id }) => id),
      ["a", "b", "c"],
    );
    assert.deepEqual(second.jobs, first.jobs);
  });

  test("a step takes jobs ahead, too", async (scene) => {
    await scene.add(newJob("a"), newJob("b"), newJob("c"));
    const node = scene.claimer("node");
    const job = await node.one({ limit: 1 });
    const finishes = [{ id: job.id, token: job.token, outcome: succeed }];
    const { finished, claimed } = await scene.store.step({
      finishes,
      claim: node.next({ limit: 1, ahead: 1 }),
    });
    assert.deepEqual(finished, [{ outcome: "written", state: "succeeded" }]);
    assert.deepEqual(
      claimed.jobs.map(({ id }) => id),
      ["b", "c"],
    );
  });

  test("the limit of a queue holds for those ahead, too", async (scene) => {
    await scene.add(newJob("a"), newJob("b"), newJob("c"), newJob("o", { queue: "other" }));
    const queues = [
      { queue: "default", limit: 2 },
      { queue: "other", limit: 5 },
    ];
    assert.deepEqual(await scene.claimer("node").ids({ limit: 1, ahead: 9, queues }), ["a", "b", "o"]);
  });

  test("paused queues, jobs due later and expired ones are passed over ahead as well", async (scene) => {
    await scene.add(
      newJob("paused", { queue: "paused" }),
      newJob("expired", { expireInMs: second }),
      newJob("later", { delayMs: 60 * minute }),
    );
    await scene.store.configureQueue({ queue: "paused", paused: true });
    await scene.advance(minute);
    await scene.add(newJob("a"));
    assert.deepEqual(await ahead(scene.claimer("node"), 9), ["a"]);
  });
}

function endTests(test: ConformanceTest): void {
  test("an at-most-once job is not claimed ahead, nor is what comes after it", async (scene) => {
    await scene.add(newJob("a"), newJob("once", { delivery: "at-most-once" }), newJob("b"));
    const node = scene.claimer("node");
    assert.deepEqual(await ahead(node, 9), ["a"]);
    assert.deepEqual(await ahead(node, 9), []);
    assert.deepEqual(await node.ids({ limit: 1, ahead: 9 }), ["once", "b"]);
  });

  test("a job with a key is not claimed ahead, nor is what comes after it", async (scene) => {
    await scene.add(newJob("key", { concurrencyKey: "k" }), newJob("rate", { rateKey: "r" }), newJob("b"));
    const node = scene.claimer("node");
    assert.deepEqual(await ahead(node, 9), []);
    assert.deepEqual((await node.ids({ limit: 3, ahead: 9 })).sort(), ["b", "key", "rate"]);
  });

  test("a lane that waits for its key holds up nothing ahead", async (scene) => {
    const names = [named("work", { concurrency: 1 })];
    await scene.add(newJob("k1", { concurrencyKey: "k" }), newJob("k2", { concurrencyKey: "k" }));
    const node = scene.claimer("node");
    assert.deepEqual(await node.ids({ limit: 5, names }), ["k1"]);
    await scene.add(newJob("a"));
    assert.deepEqual(await ahead(node, 9), ["a"]);
  });

  test("a queue with a limit is not claimed from ahead, nor is what comes after it", async (scene) => {
    await scene.store.configureQueue({ queue: "few", concurrency: 5 });
    await scene.store.configureQueue({ queue: "slow", rate: { limit: 5, perMs: minute } });
    const node = scene.claimer("node");
    for (const queue of ["few", "slow"]) {
      await scene.add(newJob(`in ${queue}`, { queue }), newJob(`after ${queue}`));
      assert.deepEqual(await ahead(node, 9), []);
      assert.deepEqual(await node.ids({ limit: 1, ahead: 9 }), [`in ${queue}`, `after ${queue}`]);
    }
  });

  test("a job that crashed is not claimed ahead", async (scene) => {
    await scene.add(newJob("a", { maxCrashes: 9 }));
    const node = scene.claimer("node");
    await node.finish(await node.one(), crash);
    assert.deepEqual(await ahead(node, 9), []);
    await node.finish(await node.one(), retry(0));
    assert.deepEqual(await ahead(node, 9), []);
  });
}

function silenceTests(test: ConformanceTest): void {
  test("a job whose holder fell silent before its start goes back as it came, and is not claimed ahead again", async (scene) => {
    await scene.add(newJob("a"));
    const node = scene.claimer("node");
    assert.deepEqual(await ahead(node, 1), ["a"]);
    await scene.advance(leaseMs + second);
    const { reaped } = await scene.store.reap({ limit: 10 });
    assert.deepEqual(reaped, [{ id: "a", name: "work", queue: "default", state: "waiting", reason: null }]);
    const job = await scene.job("a");
    assert.equal(job.attempt, 0);
    assert.equal(job.crashes, 0);
    assert.equal(job.token, 1);
    assert.deepEqual(await scene.trail("a"), []);
    assert.deepEqual(await ahead(node, 1), []);
    assert.deepEqual(await node.ids({ limit: 1 }), ["a"]);
    await reapAll(scene);
    assert.equal((await scene.job("a")).crashes, 1, "a direct claim counts");
  });

  test("a claim that was extended counts as started", async (scene) => {
    await scene.add(newJob("a"));
    const node = scene.claimer("node");
    const job = await node.one({ limit: 0, ahead: 1 });
    assert.equal((await node.extend(job)).outcome, "extended");
    await reapAll(scene);
    assert.equal((await scene.job("a")).crashes, 1);
    assert.equal((await scene.job("a")).attempt, 1);
  });

  test("a finish ends it: what was given back, or failed, may be claimed ahead again", async (scene) => {
    await scene.add(newJob("a"));
    const node = scene.claimer("node");
    for (const outcome of [{ kind: "release" }, retry(0), { kind: "snooze", delayMs: 0 }] as const) {
      const job = await node.one({ limit: 0, ahead: 1 });
      assert.equal((await node.finish(job, outcome)).outcome, "written");
    }
    const last = await node.one({ limit: 0, ahead: 1 });
    assert.deepEqual(await node.finish(last, succeed), { outcome: "written", state: "succeeded" });
  });

  test("a job that is cancelled before its start is cancelled when its holder falls silent", async (scene) => {
    await scene.add(newJob("a"));
    assert.deepEqual(await ahead(scene.claimer("node"), 1), ["a"]);
    await scene.store.cancel({ select: { ids: ["a"] }, reason: "no need" });
    await reapAll(scene);
    const job = await scene.job("a");
    assert.equal(job.state, "cancelled");
    assert.equal(job.reason, "no need");
  });

  test("a thousand jobs are claimed ahead, and go back, in single calls", async (scene) => {
    await scene.add(...Array.from({ length: 1_000 }, (_, n) => newJob(`j${String(n).padStart(4, "0")}`)));
    const node = scene.claimer("node");
    const jobs = await node.take({ limit: 10, ahead: 5_000 });
    assert.equal(jobs.length, 1_000);
    await scene.advance(leaseMs + second);
    const { reaped } = await scene.store.reap({ limit: 5_000 });
    assert.equal(reaped.length, 1_000);
    const again = await node.take({ limit: 0, ahead: 5_000 });
    assert.deepEqual(again, [], "neither those that crashed nor those that went back");
    const after = await scene.store.get({ ids: jobs.map(({ id }) => id) });
    assert.equal(after.filter((job) => job?.crashes === 1).length, 10);
    assert.equal(after.filter((job) => job?.crashes === 0).length, 990);
  });
}
