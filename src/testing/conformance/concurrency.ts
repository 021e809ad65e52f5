import assert from "node:assert/strict";
import type { CountRow } from "../../store/questions.ts";
import { leaseMs, named } from "./claimer.ts";
import {
  type ConformanceTest,
  die,
  hour,
  later,
  minute,
  newJob,
  retry,
  type Scene,
  succeed,
} from "./scene.ts";

/** Several handles, as several processes have them, each with a claimer. */
async function crowd(scene: Scene, size: number) {
  const stores = await Promise.all(Array.from({ length: size }, () => scene.open()));
  return stores.map((store, n) => ({ store, claimer: scene.claimer(`node-${n}`, store) }));
}

export function concurrencyTests(test: ConformanceTest): void {
  test("N nodes that claim at once never get one job twice, and together get all [K1]", async (scene) => {
    const ids = Array.from({ length: 200 }, (_, n) => `j${n}`);
    await scene.add(...ids.map((id) => newJob(id, { delivery: "at-most-once" })));
    const nodes = await crowd(scene, 8);
    const taken: string[] = [];
    for (let round = 0; taken.length < ids.length && round < 50; round += 1) {
      const answers = await Promise.all(nodes.map(({ claimer }) => claimer.ids({ limit: 10 })));
      taken.push(...answers.flat());
    }
    assert.deepEqual(taken.toSorted(), ids.toSorted());
    for (const job of await scene.store.get({ ids })) assert.equal(job?.token, 1);
  });

  test("delayed jobs are swept in the order of their time, each by one of the nodes that sweep at once [K7]", async (scene) => {
    const now = await scene.now();
    const ids = Array.from({ length: 40 }, (_, n) => `j${String(n).padStart(2, "0")}`);
    const jobs = ids.map((id, n) =>
      newJob(id, { runAt: later(now, (n + 1) * minute), delivery: "at-most-once" }),
    );
    await scene.add(...jobs.toReversed());
    await scene.advance(hour);
    const nodes = await crowd(scene, 4);
    const swept = await Promise.all(nodes.map(({ claimer }) => claimer.ids({ limit: 10 })));
    if (scene.store.capabilities.acrossSlots) {
      for (const one of swept) assert.deepEqual(one, one.toSorted(), "in the order of their time");
    }
    const rest = await nodes[0]?.claimer.ids({ limit: 40 });
    assert.deepEqual([...swept.flat(), ...(rest ?? [])].toSorted(), ids, "each once");
  });

  test("without faults every job is run exactly once by nodes that step in parallel [C1]", async (scene) => {
    const ids = Array.from({ length: 300 }, (_, n) => `j${n}`);
    await scene.add(...ids.map((id, n) => newJob(id, n % 3 === 0 ? { concurrencyKey: `k${n % 5}` } : {})));
    const runs = new Map<string, number>();
    const names = [named("work", { concurrency: 2 })];
    const nodes = await crowd(scene, 4);
    await Promise.all(
      nodes.map(async ({ store, claimer }) => {
        let finishes: { id: string; token: number; outcome: typeof succeed }[] = [];
        for (let round = 0; round < 500; round += 1) {
          const { finished, claimed } = await store.step({
            finishes,
            claim: claimer.next({ names, limit: 7 }),
          });
          for (const { outcome } of finished) assert.equal(outcome, "written");
          for (const { id } of claimed.jobs) runs.set(id, (runs.get(id) ?? 0) + 1);
          finishes = claimed.jobs.map(({ id, token }) => ({ id, token, outcome: succeed }));
          if (claimed.jobs.length === 0 && runs.size === ids.length) return;
        }
      }),
    );
    assert.deepEqual([...runs.keys()].toSorted(), ids.toSorted());
    assert(
      [...runs.values()].every((count) => count === 1),
      "some job ran twice",
    );
    assert.deepEqual(await scene.store.count({ filter: {}, by: ["state"] }), [
      { state: "succeeded", count: 300 },
    ]);
  });

  test("limits hold when many claim at once: a key's, a queue's, and a rate", async (scene) => {
    await scene.store.configureQueue({ queue: "narrow", concurrency: 3 });
    await scene.store.configureQueue({ queue: "slow", rate: { limit: 4, perMs: hour } });
    const many = (prefix: string, changes: object) =>
      Array.from({ length: 20 }, (_, n) => newJob(`${prefix}${n}`, changes));
    await scene.add(
      ...many("key", { concurrencyKey: "k" }),
      ...many("narrow", { queue: "narrow" }),
      ...many("slow", { queue: "slow" }),
    );
    const names = [named("work", { concurrency: 2 })];
    const nodes = await crowd(scene, 6);
    const answers = await Promise.all(nodes.map(({ claimer }) => claimer.ids({ names })));
    const taken = answers.flat();
    const count = (prefix: string) => taken.filter((id) => id.startsWith(prefix)).length;
    assert.deepEqual([count("key"), count("narrow"), count("slow")], [2, 3, 4]);
  });

  test("a fragile job goes to one of many claimers that are alone", async (scene) => {
    await scene.run(newJob("f", { maxCrashes: 2 }), { kind: "crash", reason: "gone" });
    const nodes = await crowd(scene, 5);
    const answers = await Promise.all(nodes.map(({ claimer }) => claimer.ids({ alone: true })));
    assert.deepEqual(answers.flat(), ["f"]);
  });

  test("many producers of one id, at once, make one job [C3]", async (scene) => {
    const nodes = await crowd(scene, 6);
    const answers = await Promise.all(
      nodes.map(({ store }, n) => store.enqueue({ jobs: [newJob("a", { input: `${n}` })] })),
    );
    const outcomes = answers.flat().map(({ outcome }) => outcome);
    assert.equal(outcomes.filter((outcome) => outcome === "added").length, 1);
    assert.equal(outcomes.filter((outcome) => outcome === "existing").length, 5);
  });

  test("many producers of one unique key, at once, make one job, and the rest are aliases of it", async (scene) => {
    const nodes = await crowd(scene, 6);
    const unique = { key: "k", forMs: null };
    const answers = await Promise.all(
      nodes.map(({ store }, n) => store.enqueue({ jobs: [newJob(`j${n}`, { unique })] })),
    );
    const results = answers.flat();
    assert.equal(results.filter(({ outcome }) => outcome === "added").length, 1);
    assert.equal(new Set(results.map(({ id }) => id)).size, 1);
    assert.deepEqual(await scene.store.count({ filter: {}, by: [] }), [{ count: 1 }]);
  });

  test("a cancel racing with a success ends in exactly one of the two [D7]", async (scene) => {
    const ids = Array.from({ length: 20 }, (_, n) => `j${n}`);
    await scene.add(...ids.map((id) => newJob(id)));
    const [node, person] = await crowd(scene, 2);
    assert(node && person);
    const claims = await node.claimer.take();
    const [finishes, cancels] = await Promise.all([
      Promise.all(claims.map((claim) => node.claimer.finish(claim, succeed))),
      Promise.all(ids.map((id) => person.store.cancel({ select: { ids: [id] }, reason: null }))),
    ]);
    assert(finishes.every(({ outcome, state }) => outcome === "written" && state === "succeeded"));
    assert(
      cancels.every(
        ({ results }) => results[0]?.outcome === "requested" || results[0]?.outcome === "terminal",
      ),
    );
    for (const state of await scene.states(...ids)) assert.equal(state, "succeeded");
  });

  test("a cancel racing with a claim gives either a cancelled job or a claim that is told [D7]", async (scene) => {
    const ids = Array.from({ length: 20 }, (_, n) => `j${n}`);
    await scene.add(...ids.map((id) => newJob(id)));
    const [node, person] = await crowd(scene, 2);
    assert(node && person);
    const [claimed] = await Promise.all([
      node.claimer.take(),
      Promise.all(ids.map((id) => person.store.cancel({ select: { ids: [id] }, reason: null }))),
    ]);
    const taken = new Set(claimed.map(({ id }) => id));
    for (const job of await scene.store.get({ ids })) {
      assert(job);
      if (taken.has(job.id)) assert.deepEqual([job.state, job.cancelRequested], ["active", true]);
      else assert.equal(job.state, "cancelled");
    }
  });

  test("a finish racing with the reaper is written once or stale, never half", async (scene) => {
    const ids = Array.from({ length: 20 }, (_, n) => `j${n}`);
    await scene.add(...ids.map((id) => newJob(id, { delivery: "at-most-once" })));
    const [node, reaper] = await crowd(scene, 2);
    assert(node && reaper);
    const claims = await node.claimer.take();
    await scene.advance(2 * leaseMs);
    const [finishes, reaped] = await Promise.all([
      Promise.all(claims.map((claim) => node.claimer.finish(claim, die))),
      reaper.store.reap({ limit: 10 }),
    ]);
    const lost = new Set(reaped.reaped.map(({ id }) => id));
    for (const [index, { outcome }] of finishes.entries()) {
      const id = claims[index]?.id ?? "";
      assert.equal(outcome, lost.has(id) ? "stale" : "written");
      assert.equal(await scene.stateOf(id), lost.has(id) ? "lost" : "dead");
    }
  });

  test("two redrives at once redrive once [C5]", async (scene) => {
    await scene.run(newJob("a"), die);
    const nodes = await crowd(scene, 4);
    const answers = await Promise.all(
      nodes.map(({ store }) => store.redrive({ select: { ids: ["a"] }, reason: null })),
    );
    const outcomes = answers.map(({ results }) => results[0]?.outcome);
    assert.equal(outcomes.filter((outcome) => outcome === "redriven").length, 1);
    assert.equal((await scene.job("a")).redrives, 1);
  });

  test("at no moment is a job that is being retried in neither or both of active and waiting [C4]", async (scene) => {
    await scene.add(newJob("a"));
    const [node, watcher] = await crowd(scene, 2);
    assert(node && watcher);
    for (let round = 0; round < 20; round += 1) {
      const claimed = await node.claimer.one();
      const counting: Promise<CountRow[]> = watcher.store.count({
        filter: { states: ["active", "waiting"] },
        by: [],
      });
      await Promise.all([node.claimer.finish(claimed, retry(0)), counting]);
      assert.deepEqual(await counting, [{ count: 1 }]);
    }
  });
}
