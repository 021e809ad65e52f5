import assert from "node:assert/strict";
import { leaseMs } from "./claimer.ts";
import { type ConformanceTest, hour, newJob, succeed } from "./scene.ts";

export function namespaceTests(test: ConformanceTest): void {
  test("jobs, ids, unique keys and aliases of two namespaces know nothing of each other", async (scene) => {
    const other = await scene.openOther();
    const unique = { key: "k", forMs: null };
    await scene.add(newJob("a", { unique }), newJob("alias", { unique }));
    const results = await other.enqueue({
      jobs: [newJob("alias", { unique }), newJob("a", { after: ["alias"] })],
    });
    assert.deepEqual(
      results.map(({ outcome }) => outcome),
      ["added", "added"],
    );
    assert.deepEqual(await scene.store.count({ filter: {}, by: [] }), [{ count: 1 }]);
    assert.deepEqual(await other.count({ filter: {}, by: [] }), [{ count: 2 }]);
    const select = { filter: {}, limit: 10, cursor: null };
    await other.cancel({ select, reason: null });
    assert.equal(await scene.stateOf("a"), "waiting");
  });

  test("claims, finishes and sequences stay in their namespace", async (scene) => {
    const other = await scene.openOther();
    await scene.add(newJob("a"));
    await other.enqueue({ jobs: [newJob("a"), newJob("b")] });
    const here = scene.claimer("node-1");
    const there = scene.claimer("node-1", other);
    const claimed = await here.one();
    assert.equal((await there.finish(claimed, succeed)).outcome, "stale");
    assert.deepEqual(await there.ids({ limit: 1 }), ["a"]);
    await here.finish(claimed, succeed);
    const [elsewhere] = await other.get({ ids: ["a"] });
    assert.equal(elsewhere?.state, "active");
  });

  test("queues, limits, nodes, schedules and partitions stay in their namespace", async (scene) => {
    const other = await scene.openOther();
    await scene.store.configureQueue({ queue: "default", paused: true });
    const rule = {
      key: "s",
      spec: "{}",
      job: "{}",
      paused: false,
      nextAt: null,
      ifVersion: null,
      ifNextAt: null,
      skipped: [],
      node: "n",
    };
    await scene.store.putSchedule(rule);
    await scene.store.acquirePartitions({ owner: "a", leaseMs, partitions: 2, want: 2 });
    assert.deepEqual(await other.queues(), []);
    assert.deepEqual(await other.nodes(), []);
    assert.deepEqual(await other.schedules({ keys: null }), []);
    assert.equal((await other.putSchedule(rule)).outcome, "put");
    const grants = await other.acquirePartitions({ owner: "b", leaseMs, partitions: 3, want: 9 });
    assert.equal(grants.length, 3);
    await other.enqueue({ jobs: [newJob("a")] });
    assert.deepEqual(await scene.claimer("node-1", other).ids(), ["a"]);
  });

  test("reaping and pruning stay in their namespace", async (scene) => {
    const other = await scene.openOther();
    await scene.add(newJob("a"));
    await scene.claimer().one();
    await scene.advance(2 * leaseMs);
    assert.deepEqual((await other.reap({ limit: 10 })).reaped, []);
    assert.equal(await scene.stateOf("a"), "active");
    await scene.run(newJob("b"), succeed);
    await scene.advance(hour);
    const params = {
      succeededMs: 0,
      cancelledMs: 0,
      deadMs: 0,
      lostMs: 0,
      nodesMs: 0,
      occurrencesMs: 0,
      limit: 10,
    };
    assert.deepEqual(await other.prune(params), { pruned: 0, more: false });
    assert.equal(await scene.stateOf("b"), "succeeded");
  });
}
