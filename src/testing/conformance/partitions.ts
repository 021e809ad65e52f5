import assert from "node:assert/strict";
import { slotOf } from "../../id.ts";
import type { DuePlace, PartitionDue } from "../../store/partitions.ts";
import { acquire, checkpoint, leaseMs, own, relayed } from "./partition-scene.ts";
import { type ConformanceTest, hour, later, minute, newJob, succeed } from "./scene.ts";

export function partitionTests(test: ConformanceTest): void {
  test("partitions cover every slot once, and the first acquire decides how many there are", async (scene) => {
    const grants = await acquire(scene, "a", 9, 3);
    assert.deepEqual(
      grants.map(({ partition, epoch, firstSlot, endSlot, mark, named }) => ({
        partition,
        epoch,
        firstSlot,
        endSlot,
        mark,
        named,
      })),
      [
        { partition: 0, epoch: 1, firstSlot: 0, endSlot: 341, mark: null, named: [] },
        { partition: 1, epoch: 1, firstSlot: 341, endSlot: 682, mark: null, named: [] },
        { partition: 2, epoch: 1, firstSlot: 682, endSlot: 1024, mark: null, named: [] },
      ],
    );
    assert.deepEqual(await acquire(scene, "b", 9, 2), [], "fewer are never made");
  });

  test("who holds which partition can be read, and who has let its lease run out holds none", async (scene) => {
    assert.deepEqual(await scene.store.partitions(), { wanted: 0, partitions: [] });
    await acquire(scene, "a", 1, 2);
    const mark = later(await scene.now(), -minute);
    await checkpoint(scene, "a", 1, { mark });
    const first = { partition: 0, epoch: 1, firstSlot: 0, endSlot: 512, mark };
    const second = { partition: 1, epoch: 0, firstSlot: 512, endSlot: 1024, mark: null, owner: null };
    assert.deepEqual(await scene.store.partitions(), {
      wanted: 2,
      partitions: [{ ...first, owner: "a" }, second],
    });
    await scene.advance(hour);
    const { partitions } = await scene.store.partitions();
    assert.deepEqual(partitions, [{ ...first, owner: null }, second]);
  });

  test("a partition is granted to one owner at a time, also when all ask at once", async (scene) => {
    const stores = [scene.store, await scene.open(), await scene.open()];
    const answers = await Promise.all(
      stores.map((store, n) => store.acquirePartitions({ owner: `o${n}`, leaseMs, partitions: 4, want: 2 })),
    );
    const granted = answers.flat().map(({ partition }) => partition);
    assert.deepEqual(granted.toSorted(), [0, 1, 2, 3]);
  });

  test("a partition that is renewed stays; one whose lease ran out goes to the next under a higher epoch", async (scene) => {
    const { epoch } = await own(scene, "a");
    const held = [{ partition: 0, epoch }];
    await scene.advance(8 * minute);
    assert.deepEqual(await scene.store.renewPartitions({ owner: "a", leaseMs, held }), ["renewed"]);
    await scene.advance(8 * minute);
    assert.deepEqual(await acquire(scene, "b"), []);
    await scene.advance(8 * minute);
    const grant = await own(scene, "b");
    assert(grant.epoch > epoch);
    assert.deepEqual(await scene.store.renewPartitions({ owner: "a", leaseMs, held }), ["stale"]);
  });

  test("a released partition is free at once, and a stale release frees nothing", async (scene) => {
    const { epoch } = await own(scene, "a");
    await scene.store.releasePartitions({ owner: "a", held: [{ partition: 0, epoch }] });
    const grant = await own(scene, "b");
    await scene.store.releasePartitions({ owner: "a", held: [{ partition: 0, epoch }] });
    await scene.store.releasePartitions({ owner: "a", held: [{ partition: 0, epoch: grant.epoch }] });
    assert.deepEqual(await acquire(scene, "c"), []);
  });

  test("what is due is read by time, from its own slots only, with the time of what was left out", async (scene) => {
    const now = await scene.now();
    const [first] = await acquire(scene, "a", 3, 3);
    assert(first);
    await scene.add(
      relayed("soon", { runAt: later(now, hour) }),
      relayed("second", { runAt: later(now, -minute), priority: 9 }),
      relayed("first", { runAt: later(now, -hour), slot: first.endSlot - 1 }),
      relayed("elsewhere", { slot: first.endSlot }),
      relayed("expired", { runAt: later(now, -9 * hour), expireInMs: minute }),
      newJob("claimed by workers"),
      relayed("far", { runAt: later(now, 9 * hour) }),
    );
    const due = (aheadMs: number, limit: number) =>
      scene.store.partitionDue({ partition: 0, aheadMs, limit, after: null });
    const near = await due(0, 10);
    const { name, queue, delivery } = newJob("any");
    const outline = { name, queue, delivery, token: 0, version: 1 };
    assert.deepEqual(near.jobs, [
      { id: "first", runAt: later(now, -hour), ...outline },
      { id: "second", runAt: later(now, -minute), ...outline },
    ]);
    assert.deepEqual(near.nextAt, later(now, hour));
    const ahead = await due(2 * hour, 10);
    assert.deepEqual([ahead.jobs.at(-1)?.id, ahead.nextAt], ["soon", later(now, 9 * hour)]);
    const few = await due(0, 1);
    assert.deepEqual([few.jobs[0]?.id, few.nextAt], ["first", later(now, -minute)]);
    assert.equal((await scene.job("first")).state, "waiting", "reading names nothing");
  });

  test("what was named is handed over with its own partition, also next to a boundary", async (scene) => {
    const [left, right] = await acquire(scene, "a", 2, 3);
    assert(left && right);
    await scene.add(
      relayed("left", { slot: left.endSlot - 1 }),
      relayed("right", { slot: right.firstSlot }),
      relayed("waits", { slot: right.firstSlot }),
    );
    for (const [{ partition, epoch }, id] of [
      [left, "left"],
      [right, "right"],
    ] as const) {
      await checkpoint(scene, "a", epoch, { partition, name: [id] });
      await scene.store.releasePartitions({ owner: "a", held: [{ partition, epoch }] });
    }
    const grants = await acquire(scene, "b", 2, 3);
    assert.deepEqual(
      grants.map(({ partition, named }) => [partition, named.map(({ id, token }) => [id, token])]),
      [
        [0, [["left", 2]]],
        [1, [["right", 2]]],
      ],
    );
    assert.equal((await scene.job("waits")).state, "waiting");
  });
}

/** Ids that lie in these slots by their own hash, as a namespace that is spread over slots needs them. */
function idsIn(firstSlot: number, endSlot: number): string[] {
  const ids = Array.from({ length: 100 }, (_, n) => `job ${n}`);
  return ids.filter((id) => slotOf(id) >= firstSlot && slotOf(id) < endSlot);
}

/** More partitions are made by cutting the namespace anew. */
export function cutTests(test: ConformanceTest): void {
  test("who asks for more partitions gets them when all have been given back, and until then nobody is granted one", async (scene) => {
    const [first, second] = await acquire(scene, "a", 2, 3);
    assert(first && second);
    assert.deepEqual(await acquire(scene, "b", 9, 6), []);
    assert.deepEqual(await acquire(scene, "a", 9, 3), [], "one is free, and is not granted any more");
    const waiting = await scene.store.partitions();
    assert.deepEqual([waiting.wanted, waiting.partitions.length], [6, 3]);
    assert.deepEqual(
      await scene.store.renewPartitions({ owner: "a", leaseMs, held: [first, second] }),
      ["renewed", "renewed"],
      "whoever holds one goes on",
    );
    await scene.store.releasePartitions({ owner: "a", held: [first] });
    assert.deepEqual(await acquire(scene, "b", 9, 6), []);
    await scene.store.releasePartitions({ owner: "a", held: [second] });
    const grants = await acquire(scene, "b", 9, 3);
    assert.deepEqual(
      grants.map(({ partition, firstSlot, endSlot, mark }) => ({ partition, firstSlot, endSlot, mark })),
      [0, 170, 341, 512, 682, 853].map((firstSlot, partition, all) => ({
        partition,
        firstSlot,
        endSlot: all[partition + 1] ?? 1024,
        mark: null,
      })),
    );
    const { wanted, partitions } = await scene.store.partitions();
    assert.deepEqual([wanted, partitions.length], [6, 6]);
  });

  test("after a cut, every epoch of before is stale, and what was named before goes to whoever has its slot now", async (scene) => {
    const before = await acquire(scene, "a", 3, 3);
    const [epoch = 0] = before.map((grant) => grant.epoch);
    const [low = ""] = idsIn(0, 170);
    const [high = "", waiting = ""] = idsIn(854, 1024);
    await scene.add(...[low, high, waiting].map((id) => relayed(id, { slot: slotOf(id) })));
    const rest = { owner: "a", epoch, settled: [], mark: null, aheadMs: 0 };
    await scene.store.checkpoint({ ...rest, partition: 0, name: [{ id: low, version: 1 }] });
    await scene.store.checkpoint({ ...rest, partition: 2, name: [{ id: high, version: 1 }] });
    await scene.advance(hour);
    // Their leases have run out, so that they keep nobody from it.
    const grants = await acquire(scene, "b", 9, 6);
    assert.deepEqual(
      grants.map(({ named }) => named.map(({ id, token }) => `${id} ${token}`)),
      [[`${low} 2`], [], [], [], [], [`${high} 2`]],
    );
    assert(grants.every((grant) => grant.epoch > epoch));
    const stale = await scene.store.renewPartitions({ owner: "a", leaseMs, held: before });
    assert.deepEqual(stale, ["stale", "stale", "stale"]);
    const settled = [{ id: low, token: 1 }];
    assert.equal((await checkpoint(scene, "a", epoch, { settled })).outcome, "stale");
    const due = async (partition: number): Promise<string[]> =>
      (await scene.store.partitionDue({ partition, aheadMs: 0, limit: 9, after: null })).jobs.map(
        ({ id }) => id,
      );
    assert.deepEqual([await due(2), await due(5)], [[], [waiting]], "waiting jobs have not moved");
    const { finished, named } = await scene.store.checkpoint({
      owner: "b",
      partition: 5,
      epoch: grants[5]?.epoch ?? 0,
      settled: [{ id: high, token: 2, outcome: succeed }],
      mark: null,
      name: [{ id: waiting, version: 1 }],
      aheadMs: 0,
    });
    assert.deepEqual(finished, [{ outcome: "written", state: "succeeded" }]);
    assert.equal(named.length, 1);
  });

  test("however many ask for more at once, the namespace is cut once and each partition granted once", async (scene) => {
    const held = await acquire(scene, "a", 1, 3);
    await scene.store.releasePartitions({ owner: "a", held });
    const stores = [scene.store, await scene.open(), await scene.open()];
    const granted: number[] = [];
    // Whoever comes while another cuts may be given none, and asks again.
    for (let round = 0; round < 10 && granted.length < 6; round += 1) {
      const answers = await Promise.all(
        stores.map((store, n) =>
          store.acquirePartitions({ owner: `o${n}`, leaseMs, partitions: 6, want: 2 }),
        ),
      );
      granted.push(...answers.flat().map(({ partition }) => partition));
    }
    assert.deepEqual(granted.toSorted(), [0, 1, 2, 3, 4, 5]);
    const { wanted, partitions } = await scene.store.partitions();
    assert.deepEqual([wanted, partitions.length], [6, 6]);
  });
}

export function duePlaceTests(test: ConformanceTest): void {
  test("what is due is read on from any place, also among jobs of one millisecond", async (scene) => {
    const now = await scene.now();
    await own(scene, "a");
    const at = (ms: number) => ({ runAt: later(now, ms) });
    const herd = Array.from({ length: 9 }, (_, n) => relayed(`herd-${n}`, { ...at(-minute), slot: n % 2 }));
    await scene.add(relayed("old", at(-hour)), ...herd, relayed("new", at(-1)), relayed("far", at(hour)));
    const ids: string[] = [];
    let after: DuePlace | null = null;
    for (let page = 0; page < 9; page += 1) {
      const due: PartitionDue = await scene.store.partitionDue({ partition: 0, aheadMs: 0, limit: 3, after });
      ids.push(...due.jobs.map(({ id }) => id));
      if (due.jobs.length === 0) {
        assert.deepEqual([due.last, due.nextAt], [null, later(now, hour)]);
        break;
      }
      assert.deepEqual(due.last?.runAt, due.jobs.at(-1)?.runAt);
      after = due.last;
    }
    assert.deepEqual(ids, ["old", ...herd.map(({ id }) => id), "new"]);
    const recent = { runAt: later(now, -minute / 2), order: 0 };
    const fresh = await scene.store.partitionDue({ partition: 0, aheadMs: 0, limit: 3, after: recent });
    assert.deepEqual(
      fresh.jobs.map(({ id }) => id),
      ["new"],
    );
    const same = { runAt: later(now, -minute), order: 0 };
    const first = await scene.store.partitionDue({ partition: 0, aheadMs: 0, limit: 1, after: same });
    assert.equal(first.jobs[0]?.id, "herd-0", "order counts from 1");
  });
}
