import assert from "node:assert/strict";
import type { Retention } from "../../store/jobs.ts";
import type { PruneParams } from "../../store/reaping.ts";
import { checkpoint, own, relayed } from "./partition-scene.ts";
import { type ConformanceTest, die, hour, lose, minute, newJob, type Scene, succeed } from "./scene.ts";

const never = 1_000 * hour;
const pruned = async (scene: Scene, changes: Partial<PruneParams> = {}): Promise<number> => {
  const { pruned: count } = await scene.store.prune({
    succeededMs: 5 * hour,
    cancelledMs: 5 * hour,
    deadMs: 5 * hour,
    lostMs: 5 * hour,
    nodesMs: never,
    occurrencesMs: never,
    limit: 1_000,
    ...changes,
  });
  return count;
};

const none: Retention = { succeededMs: null, cancelledMs: null, deadMs: null, lostMs: null };
const kept = (ms: number): Retention => ({ succeededMs: ms, cancelledMs: ms, deadMs: ms, lostMs: ms });

/** Ends jobs with this retention in each of the states. */
async function endAll(scene: Scene, prefix: string, retention: Retention | null): Promise<string[]> {
  const id = (name: string): string => `${prefix}-${name}`;
  const made = (name: string, changes = {}) => newJob(id(name), { retention, ...changes });
  await scene.run(made("done"), succeed);
  await scene.run(made("answered"), { kind: "succeed", result: '"yes"' });
  await scene.run(made("dead"), die);
  await scene.run(made("lost", { delivery: "at-most-once" }), lose);
  await scene.add(made("gone", { delayMs: never }));
  await scene.cancel(id("gone"));
  return ["done", "answered", "dead", "lost", "gone"].map(id);
}

export function retentionTests(test: ConformanceTest): void {
  test("a job with a retention of its own is forgotten by that, whatever its end, and others as ever", async (scene) => {
    const short = await endAll(scene, "short", kept(2 * hour));
    const long = await endAll(scene, "long", kept(9 * hour));
    const usual = await endAll(scene, "usual", null);
    const left = async (): Promise<string[]> => {
      const ids = [...short, ...long, ...usual];
      const states = await scene.states(...ids);
      return ids.filter((_, index) => states[index] !== null);
    };
    await scene.advance(hour);
    assert.equal(await pruned(scene), 0);
    await scene.advance(2 * hour);
    assert.equal(await pruned(scene), short.length);
    assert.deepEqual(await left(), [...long, ...usual]);
    await scene.advance(3 * hour);
    assert.equal(await pruned(scene), usual.length);
    assert.deepEqual(await left(), long);
    await scene.advance(2 * hour);
    assert.equal(await pruned(scene, { succeededMs: 0, cancelledMs: 0, deadMs: 0, lostMs: 0 }), 0);
    await scene.advance(2 * hour);
    assert.equal(await pruned(scene), long.length);
    assert.deepEqual(await left(), []);
    assert.deepEqual(await scene.store.count({ filter: {}, by: [] }), [{ count: 0 }]);
  });

  test("what a job's own retention says nothing about is as for every job", async (scene) => {
    const retention = { ...none, succeededMs: 0, deadMs: 9 * hour };
    const ids = await endAll(scene, "own", retention);
    await scene.advance(hour);
    assert.equal(await pruned(scene), 2);
    assert.deepEqual(await scene.states(...ids), [null, null, "dead", "lost", "cancelled"]);
    await scene.advance(5 * hour);
    assert.equal(await pruned(scene), 2);
    assert.deepEqual(await scene.states(...ids), [null, null, "dead", null, null]);
  });

  test("jobs with a retention of their own are listed, counted and deleted as others", async (scene) => {
    await endAll(scene, "own", kept(2 * hour));
    const states = ["dead", "cancelled"] as const;
    const page = { limit: 10, order: "oldest", cursor: null } as const;
    const { jobs } = await scene.store.list({ filter: { states }, ...page });
    assert.deepEqual(jobs.map(({ id }) => id).toSorted(), ["own-dead", "own-gone"]);
    assert(jobs.every(({ finishedAt }) => finishedAt !== null));
    assert.deepEqual(await scene.store.count({ filter: { states }, by: [] }), [{ count: 2 }]);
    await scene.store.remove({ select: { ids: ["own-done"] }, reason: null });
    await scene.advance(3 * hour);
    assert.equal(await pruned(scene), 4);
  });

  test("a job's own retention counts whoever ends it: the relay, the reaper, a parent, a transaction", async (scene) => {
    const retention = kept(2 * hour);
    const { epoch } = await own(scene, "relay");
    await scene.add(relayed("published", { retention }), relayed("failed", { retention }));
    await checkpoint(scene, "relay", epoch, { name: ["published", "failed"] });
    const rest = { owner: "relay", partition: 0, epoch, mark: null, name: [], aheadMs: 0 };
    await scene.store.checkpoint({ ...rest, settled: [{ id: "published", token: 1, outcome: succeed }] });
    await scene.store.checkpoint({ ...rest, settled: [{ id: "failed", token: 1, outcome: die }] });
    await scene.add(newJob("silent", { retention, delivery: "at-most-once" }));
    await scene.claimer("silent").one();
    await scene.add(newJob("parent", { delayMs: never, expireInMs: 0, retention }));
    await scene.add(newJob("orphan", { after: ["parent"], retention }));
    await scene.cancel("parent");
    await scene.add(newJob("expired", { delayMs: minute, expireInMs: 0, retention }));
    await scene.advance(hour);
    assert.deepEqual((await scene.reapAll()).toSorted(), ["expired", "silent"]);
    const ids = ["published", "failed", "silent", "parent", "orphan", "expired"];
    if (scene.store.capabilities.transactions) {
      const encode = () => ({ kind: "succeed", result: null }) as const;
      await scene.add(newJob("effect", { delivery: "effectively-once", retention }));
      const { id, token } = await scene.claimer("effect").one();
      await scene.store.transact({ claimer: "effect", id, token, encode, run: () => null });
      ids.push("effect");
    }
    assert.equal(await pruned(scene, { succeededMs: 0, cancelledMs: 0, deadMs: 0, lostMs: 0 }), 0);
    await scene.advance(3 * hour);
    assert.equal(await pruned(scene), ids.length);
    assert.deepEqual(
      await scene.states(...ids),
      ids.map(() => null),
    );
  });

  test("a redriven job is forgotten by its own retention, counted from its last end", async (scene) => {
    const claimer = scene.claimer();
    await scene.run(newJob("a", { retention: kept(2 * hour) }), die, claimer);
    await scene.advance(hour);
    await scene.store.redrive({ select: { ids: ["a"] }, reason: null });
    await scene.advance(4 * hour);
    assert.equal(await pruned(scene, { deadMs: 0 }), 0);
    await claimer.finish(await claimer.one(), succeed);
    await scene.advance(hour);
    assert.equal(await pruned(scene, { succeededMs: 0 }), 0);
    await scene.advance(2 * hour);
    assert.equal(await pruned(scene), 1);
  });

  test("a job that holds its unique key for a time stays beyond its own retention", async (scene) => {
    const unique = { key: "k", forMs: 10 * hour };
    await scene.run(newJob("a", { unique, retention: kept(hour) }), succeed);
    await scene.advance(6 * hour);
    assert.equal(await pruned(scene), 0);
    assert.deepEqual(await scene.add(newJob("b", { unique })), [{ id: "a", outcome: "absorbed" }]);
    await scene.advance(5 * hour);
    assert.equal(await pruned(scene), 1);
  });

  test("jobs with a retention of their own are forgotten in batches, and it says whether there are more", async (scene) => {
    const claimer = scene.claimer();
    await scene.add(...["a", "b", "c"].map((id) => newJob(id, { retention: kept(hour) })));
    for (const claimed of await claimer.take()) await claimer.finish(claimed, succeed);
    await scene.advance(2 * hour);
    const params = { succeededMs: never, cancelledMs: never, deadMs: never, lostMs: never };
    const prune = () => scene.store.prune({ ...params, nodesMs: never, occurrencesMs: never, limit: 2 });
    assert.deepEqual(await prune(), { pruned: 2, more: true });
    assert.deepEqual(await prune(), { pruned: 1, more: false });
  });
}
