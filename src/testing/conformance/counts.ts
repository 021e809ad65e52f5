import assert from "node:assert/strict";
import type { CountRow } from "../../store/questions.ts";
import type { PruneParams } from "../../store/reaping.ts";
import { named } from "./claimer.ts";
import { acquire, checkpoint, own, relayed } from "./partition-scene.ts";
import {
  type ConformanceTest,
  die,
  hour,
  lose,
  minute,
  newJob,
  retry,
  type Scene,
  succeed,
} from "./scene.ts";

const by = ["queue", "name", "state"] as const;

/** What `count` says must be what somebody finds who looks at every job. */
async function assertCounted(scene: Scene, when: string): Promise<void> {
  const found = new Map<string, number>();
  let cursor: string | null = null;
  do {
    const page = await scene.store.list({ filter: {}, limit: 100, order: "oldest", cursor });
    for (const { queue, name, state } of page.jobs) {
      const key = `${queue} ${name} ${state}`;
      found.set(key, (found.get(key) ?? 0) + 1);
    }
    cursor = page.cursor;
  } while (cursor !== null);
  const told = (rows: readonly CountRow[]): string[] =>
    rows.map(({ queue, name, state, count }) => `${queue} ${name} ${state} ${count}`).sort();
  const counted = told(await scene.store.count({ filter: {}, by }));
  assert.deepEqual(counted, [...found].map(([key, count]) => `${key} ${count}`).sort(), when);
}

const all: PruneParams = {
  succeededMs: 0,
  cancelledMs: 0,
  deadMs: 0,
  lostMs: 0,
  nodesMs: hour,
  occurrencesMs: hour,
  limit: 1_000,
};

export function countTests(test: ConformanceTest): void {
  test("counts are those of a recount after every way in and through", async (scene) => {
    const claimer = scene.claimer();
    await scene.add(newJob("a"), newJob("a"), newJob("b", { name: "other" }), newJob("c", { queue: "far" }));
    await assertCounted(scene, "enqueued");
    await scene.add(
      newJob("a"),
      newJob("d", { delayMs: hour }),
      newJob("t", { tags: ["x"], expireInMs: minute }),
    );
    await assertCounted(scene, "enqueued again");
    const names = ["work", "other"];
    const jobs = await claimer.take({ limit: 4, names: names.map((name) => named(name)) });
    await assertCounted(scene, "claimed");
    const outcomes = [succeed, retry(0), die, { kind: "release" } as const];
    for (const [n, job] of jobs.entries()) {
      await claimer.finish(job, outcomes[n] ?? succeed);
      await assertCounted(scene, `finished as ${outcomes[n]?.kind}`);
    }
    await scene.cancel("d");
    await assertCounted(scene, "cancelled");
    await scene.add(newJob("m", { queue: "alone", delivery: "at-most-once" }));
    const [once] = await claimer.take({ queues: [{ queue: "alone", limit: 1 }] });
    assert(once, "nothing was claimed");
    await claimer.finish(once, lose);
    await assertCounted(scene, "lost");
    for (const id of ["a", "b", "c", "m", "t"]) await scene.redrive(id);
    await assertCounted(scene, "redriven");
    await scene.advance(2 * hour);
    await scene.reapAll();
    await assertCounted(scene, "reaped");
    await scene.store.remove({ select: { filter: {}, limit: 1, cursor: null }, reason: null });
    await assertCounted(scene, "removed");
    await scene.store.prune(all);
    await assertCounted(scene, "pruned");
    await scene.add(newJob("a"));
    await assertCounted(scene, "added anew");
  });

  test("counts are those of a recount where a batch brings jobs of several names, and some are known", async (scene) => {
    const batch = (...numbers: number[]) =>
      scene.add(...numbers.map((n) => newJob(`j${n}`, { name: `n${n % 3}`, queue: `q${n % 2}` })));
    await batch(0, 1, 2, 3, 4);
    await assertCounted(scene, "all new");
    await batch(0, 1, 2, 3);
    await assertCounted(scene, "all known");
    await batch(0, 5, 1, 6, 6, 7, 2);
    await assertCounted(scene, "some known");
    await scene.reapAll();
    await assertCounted(scene, "folded");
    await batch(7, 8, 9);
    await assertCounted(scene, "more since");
    const many = Array.from({ length: 2_500 }, (_, n) => n);
    await batch(...many);
    const sum = await scene.store.count({ filter: { names: ["n1"] }, by: [] });
    assert.deepEqual(sum, [{ count: many.filter((n) => n % 3 === 1).length }]);
  });

  test("counts are those of a recount where jobs wait for others, absorb them and take them along", async (scene) => {
    const claimer = scene.claimer();
    await scene.add(
      newJob("parent"),
      newJob("child", { after: ["parent"] }),
      newJob("grandchild", { after: ["child"] }),
    );
    await assertCounted(scene, "blocked");
    const parent = await claimer.one();
    await claimer.finish(parent, succeed);
    await assertCounted(scene, "unblocked");
    await claimer.finish(await claimer.one(), die);
    await assertCounted(scene, "taken along");
    await scene.add(newJob("orphan", { after: ["child"] }));
    await assertCounted(scene, "orphaned");
    const unique = { key: "k", forMs: null };
    await scene.add(newJob("u", { unique }), newJob("v", { unique }));
    const debounce = { key: "d", waitMs: hour, maxMs: null };
    await scene.add(newJob("w", { debounce }), newJob("x", { debounce }));
    await assertCounted(scene, "absorbed and debounced");
  });

  test("counts are those of a recount after checkpoints and takeovers of the relay", async (scene) => {
    const { epoch } = await own(scene, "a");
    await scene.add(relayed("x"), relayed("y"), relayed("z"));
    await checkpoint(scene, "a", epoch, { name: ["x", "y"] });
    await assertCounted(scene, "named");
    await scene.store.checkpoint({
      owner: "a",
      partition: 0,
      epoch,
      settled: [
        { id: "x", token: 1, outcome: succeed },
        { id: "y", token: 1, outcome: { kind: "rollback", delayMs: 0, error: '"full"' } },
      ],
      mark: null,
      name: [{ id: "z", version: 1 }],
      aheadMs: 0,
    });
    await assertCounted(scene, "settled");
    await scene.advance(hour);
    await acquire(scene, "b");
    await assertCounted(scene, "taken over");
  });

  test("counts obey states, queues and names, and an unknown one has none", async (scene) => {
    await scene.run(newJob("a"), succeed);
    await scene.add(newJob("b"), newJob("c", { queue: "far" }), newJob("d", { name: "other" }));
    const count = (filter: object): Promise<CountRow[]> => scene.store.count({ filter, by: [] });
    assert.deepEqual(await count({ states: ["waiting"] }), [{ count: 3 }]);
    assert.deepEqual(await count({ queues: ["far", "nowhere"] }), [{ count: 1 }]);
    assert.deepEqual(await count({ names: ["work"], states: ["waiting", "succeeded"] }), [{ count: 3 }]);
    assert.deepEqual(await count({ queues: ["nowhere"] }), [{ count: 0 }]);
    assert.deepEqual(await scene.store.count({ filter: { queues: ["nowhere"] }, by: ["state"] }), []);
  });
}
