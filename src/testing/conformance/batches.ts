import assert from "node:assert/strict";
import { type ConformanceTest, newJob, succeed } from "./scene.ts";

const size = 10_000;

export function batchTests(test: ConformanceTest): void {
  test("ten thousand jobs are enqueued, claimed, extended, finished, counted and pruned in single calls", async (scene) => {
    const jobs = Array.from({ length: size }, (_, n) => newJob(`j${n}`));
    const added = await scene.store.enqueue({ jobs });
    assert(
      added.length === size &&
        added.every(({ outcome }, n) => outcome === "added" && added[n]?.id === `j${n}`),
    );
    const again = await scene.store.enqueue({ jobs });
    assert(again.every(({ outcome }) => outcome === "existing"));
    const claimer = scene.claimer();
    const claimed = await claimer.take({ limit: size });
    assert.deepEqual(
      claimed.map(({ id }) => id),
      jobs.map(({ id }) => id),
    );
    const claims = claimed.map(({ id, token }) => ({ id, token }));
    const extended = await scene.store.extend({ claimer: claimer.id, leaseMs: 60_000, claims });
    assert(extended.length === size && extended.every(({ outcome }) => outcome === "extended"));
    const finishes = claims.map((claim) => ({ ...claim, outcome: succeed }));
    const finished = await scene.store.finish({ claimer: claimer.id, finishes });
    assert(finished.length === size && finished.every(({ outcome }) => outcome === "written"));
    assert.deepEqual(await scene.store.count({ filter: {}, by: ["state"] }), [
      { state: "succeeded", count: size },
    ]);
    assert.equal((await scene.store.get({ ids: jobs.map(({ id }) => id) })).filter(Boolean).length, size);
    await scene.advance(60_000);
    const kept = { succeededMs: 1_000, cancelledMs: 0, deadMs: 0, lostMs: 0, nodesMs: 0, occurrencesMs: 0 };
    assert.deepEqual(await scene.store.prune({ ...kept, limit: size }), { pruned: size, more: false });
  });

  test("a batch with one id ten thousand times is one job", async (scene) => {
    const results = await scene.store.enqueue({ jobs: Array.from({ length: size }, () => newJob("same")) });
    assert.equal(results.filter(({ outcome }) => outcome === "added").length, 1);
    assert.equal(results.filter(({ outcome }) => outcome === "existing").length, size - 1);
  });

  test("a batch that follows something is written after it, and not at all where that fails", async (scene) => {
    // In one slot: the order of claims holds within each.
    const [first, second, third] = ["{one}a", "{one}b", "{one}c"] as const;
    const before = Promise.withResolvers<void>();
    const following = scene.store.enqueue({ jobs: [newJob(second)], follows: before.promise });
    await scene.add(newJob(first));
    assert.deepEqual(await scene.store.get({ ids: [second] }), [null]);
    before.resolve();
    assert.deepEqual(await following, [{ id: second, outcome: "added" }]);
    assert.deepEqual(await scene.claimer().ids(), [first, second]);
    const failed = Promise.reject(new Error("the one before failed"));
    await assert.rejects(
      scene.store.enqueue({ jobs: [newJob(third)], follows: failed }),
      /the one before failed/,
    );
    assert.deepEqual(await scene.store.get({ ids: [third] }), [null]);
  });

  test("a parent with a thousand children unblocks them all", async (scene) => {
    await scene.store.enqueue({
      jobs: [newJob("p"), ...Array.from({ length: 1_000 }, (_, n) => newJob(`c${n}`, { after: ["p"] }))],
    });
    const claimer = scene.claimer();
    await claimer.finish(await claimer.one(), succeed);
    assert.equal((await claimer.take({ limit: size })).length, 1_000);
  });
}
