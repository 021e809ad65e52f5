import assert from "node:assert/strict";
import type { PruneParams } from "../../store/reaping.ts";
import { type ConformanceTest, die, hour, later, lose, newJob, type Scene, succeed } from "./scene.ts";
import { fire, firing, ledger, planned, put, rule } from "./schedule-scene.ts";

const never = 1_000 * hour;
const prune = (scene: Scene, changes: Partial<PruneParams>) =>
  scene.store.prune({
    succeededMs: never,
    cancelledMs: never,
    deadMs: never,
    lostMs: never,
    nodesMs: never,
    occurrencesMs: never,
    auditMs: never,
    limit: 1_000,
    ...changes,
  });

export function pruneTests(test: ConformanceTest): void {
  test("each terminal state is forgotten by its own retention, counted from its end", async (scene) => {
    await scene.run(newJob("done"), succeed);
    await scene.run(newJob("dead"), die);
    await scene.run(newJob("lost", { delivery: "at-most-once" }), lose);
    await scene.add(newJob("gone"), newJob("waits", { delayMs: never }));
    await scene.cancel("gone");
    const ids = ["done", "gone", "dead", "lost"];
    assert.deepEqual(await prune(scene, {}), { pruned: 0, more: false });
    await scene.advance(2 * hour);
    for (const [index, state] of (["succeeded", "cancelled", "dead", "lost"] as const).entries()) {
      assert.deepEqual(await prune(scene, { [`${state}Ms`]: 3 * hour }), { pruned: 0, more: false });
      assert.deepEqual(await prune(scene, { [`${state}Ms`]: hour }), { pruned: 1, more: false });
      const left = (await scene.states(...ids)).map((one) => one === null);
      assert.deepEqual(
        left,
        ids.map((_, n) => n <= index),
      );
    }
    assert.equal(await scene.stateOf("waits"), "waiting");
  });

  test("a job that waits, runs or is blocked is never forgotten", async (scene) => {
    await scene.add(
      newJob("active"),
      newJob("waits", { delayMs: 99 * hour }),
      newJob("blocked", { after: ["waits"] }),
    );
    await scene.claimer().one();
    await scene.advance(hour);
    const all = { succeededMs: 0, cancelledMs: 0, deadMs: 0, lostMs: 0 };
    assert.deepEqual(await prune(scene, all), { pruned: 0, more: false });
  });

  test("pruning goes in batches and says whether there is more", async (scene) => {
    const claimer = scene.claimer();
    await scene.add(...["a", "b", "c"].map((id) => newJob(id)));
    for (const claimed of await claimer.take()) await claimer.finish(claimed, succeed);
    await scene.advance(2 * hour);
    assert.deepEqual(await prune(scene, { succeededMs: hour, limit: 2 }), { pruned: 2, more: true });
    assert.deepEqual(await prune(scene, { succeededMs: hour, limit: 2 }), { pruned: 1, more: false });
    assert.deepEqual(await scene.store.count({ filter: {}, by: [] }), [{ count: 0 }]);
  });

  test("rows of the ledger are forgotten by their own retention, in batches, and it says whether there are more", async (scene) => {
    const first = later(await scene.now(), -10 * hour);
    const times = [0, 1, 2].map((n) => later(first, n * hour));
    const schedule = await put(scene.store, rule("s", first));
    const occurrences = times.map((fireAt) => planned("s", fireAt));
    await fire(scene.store, firing(schedule, first, { occurrences, advanceTo: null }));
    const rows = async () => (await ledger(scene, "s")).map(({ fireAt }) => fireAt);
    await scene.advance(2 * hour);
    const batch = { occurrencesMs: hour, limit: 2 };
    assert.deepEqual(await prune(scene, { ...batch, occurrencesMs: 3 * hour }), { pruned: 0, more: false });
    assert.deepEqual((await rows()).length, 3);
    assert.deepEqual(await prune(scene, batch), { pruned: 0, more: true });
    assert.deepEqual(await rows(), times.slice(2));
    assert.deepEqual(await prune(scene, batch), { pruned: 0, more: false });
    assert.deepEqual(await rows(), []);
    assert.equal((await scene.store.count({ filter: {}, by: [] }))[0]?.count, 3);
  });

  test("with a job go its trail and its aliases: the ids may be used again", async (scene) => {
    const unique = { key: "k", forMs: null };
    await scene.add(newJob("a", { unique }), newJob("alias", { unique }));
    const claimer = scene.claimer();
    await claimer.finish(await claimer.one(), die);
    await scene.advance(2 * hour);
    await prune(scene, { deadMs: hour });
    assert.deepEqual(await scene.trail("a"), []);
    const results = await scene.add(newJob("alias"), newJob("a"));
    assert.deepEqual(
      results.map(({ outcome }) => outcome),
      ["added", "added"],
    );
    assert.deepEqual(await scene.trail("a"), []);
    assert.deepEqual([(await scene.job("a")).token, (await scene.job("a")).version], [0, 1]);
  });

  test("a job that still holds its unique key for a time stays until it does not", async (scene) => {
    const unique = { key: "k", forMs: 10 * hour };
    await scene.run(newJob("a", { unique }), succeed);
    await scene.advance(5 * hour);
    assert.deepEqual(await prune(scene, { succeededMs: hour }), { pruned: 0, more: false });
    assert.deepEqual(await scene.add(newJob("b", { unique })), [{ id: "a", outcome: "absorbed" }]);
    await scene.advance(6 * hour);
    assert.deepEqual(await prune(scene, { succeededMs: hour }), { pruned: 1, more: false });
    assert.deepEqual(await scene.add(newJob("c", { unique })), [{ id: "c", outcome: "added" }]);
  });

  test("a forgotten job is an unknown parent, and its children live on", async (scene) => {
    await scene.add(newJob("p"), newJob("c", { after: ["p"], delayMs: 99 * hour }));
    const claimer = scene.claimer();
    await claimer.finish(await claimer.one(), succeed);
    await scene.advance(2 * hour);
    await prune(scene, { succeededMs: hour });
    assert.equal(await scene.stateOf("c"), "waiting");
    assert.equal((await scene.add(newJob("late", { after: ["p"] })))[0]?.outcome, "refused");
  });

  test("a finish for a forgotten job is stale", async (scene) => {
    const claimer = scene.claimer();
    const claimed = await scene.run(newJob("a"), succeed, claimer);
    await scene.advance(2 * hour);
    await prune(scene, { succeededMs: hour });
    assert.deepEqual(await claimer.finish(claimed, succeed), { outcome: "stale", state: null });
  });
}
