import assert from "node:assert/strict";
import type { NodeRecord } from "../../store/nodes.ts";
import { assertAbout, type ConformanceTest, hour, later, minute, newJob } from "./scene.ts";

const node = (id: string, changes: Partial<NodeRecord> = {}): NodeRecord => ({
  id,
  host: "höst",
  pid: 42,
  version: "1.2.3",
  roles: ["worker", "reaper"],
  queues: null,
  names: ["work"],
  concurrency: 10,
  active: 0,
  ttlMs: minute,
  ...changes,
});

export function queueTests(test: ConformanceTest): void {
  test("a queue is configured piece by piece: what is left out stays, null takes away", async (scene) => {
    assert.deepEqual(await scene.store.queues(), []);
    const paused = { queue: "q", paused: true, concurrency: null, rate: null };
    assert.deepEqual(await scene.store.configureQueue({ queue: "q", paused: true }), paused);
    const rate = { limit: 5, perMs: 1_000 };
    const limited = { ...paused, concurrency: 3, rate };
    assert.deepEqual(await scene.store.configureQueue({ queue: "q", concurrency: 3, rate }), limited);
    const freed = { queue: "q", paused: false, concurrency: null, rate };
    assert.deepEqual(
      await scene.store.configureQueue({ queue: "q", concurrency: null, paused: false }),
      freed,
    );
    assert.deepEqual(await scene.store.queues(), [freed]);
  });

  test("queues that were configured are listed by name, others are not", async (scene) => {
    await scene.add(newJob("a", { queue: "busy" }));
    for (const queue of ["z", "a", "m"]) await scene.store.configureQueue({ queue });
    assert.deepEqual(
      (await scene.store.queues()).map(({ queue }) => queue),
      ["a", "m", "z"],
    );
  });
}

export function nodeTests(test: ConformanceTest): void {
  test("a node is seen as it tells of itself, and alive as long as it is not silent", async (scene) => {
    const now = await scene.now();
    const told = node("n1", {
      queues: ["a", "b"],
      running: [{ id: "job-1", name: "work", forMs: 90_000, leaseMs: 20_000 }],
      destinations: [{ transport: "kafka", destination: "mäil", failures: 2, error: "no route" }],
      lags: [{ partition: 3, lagMs: 1_500 }],
    });
    await scene.store.putNode(told);
    const [first] = await scene.store.nodes();
    assert(first);
    assertAbout(first.startedAt, now, "startedAt");
    assert.deepEqual(first, {
      ...told,
      startedAt: first.startedAt,
      seenAt: first.startedAt,
      alive: true,
    });
    await scene.advance(hour);
    assert.equal((await scene.store.nodes())[0]?.alive, false);
    await scene.store.putNode(node("n1", { active: 7 }));
    const [again] = await scene.store.nodes();
    assert.deepEqual([again?.alive, again?.active, again?.startedAt], [true, 7, first.startedAt]);
    assertAbout(again?.seenAt ?? null, later(now, hour), "seenAt");
  });

  test("nodes are removed by themselves when they leave, and by prune when they fell silent", async (scene) => {
    for (const id of ["n3", "n1", "n2"]) await scene.store.putNode(node(id));
    assert.deepEqual(
      (await scene.store.nodes()).map(({ id }) => id),
      ["n1", "n2", "n3"],
    );
    await scene.store.removeNode({ id: "n1" });
    await scene.store.removeNode({ id: "nobody" });
    await scene.advance(2 * hour);
    await scene.store.putNode(node("n2"));
    const kept = 24 * hour;
    await scene.store.prune({
      succeededMs: kept,
      cancelledMs: kept,
      deadMs: kept,
      lostMs: kept,
      nodesMs: hour,
      occurrencesMs: hour,
      limit: 100,
    });
    assert.deepEqual(
      (await scene.store.nodes()).map(({ id }) => id),
      ["n2"],
    );
  });
}
