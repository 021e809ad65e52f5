import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { silentLogger } from "../../src/log.ts";
import { maxCount } from "../../src/state.ts";
import type { Store } from "../../src/store/store.ts";
import { newJob, succeed } from "../../src/testing/conformance/scene.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { type Vandal, type VandalKind, vandals } from "../fuzz/sql-vandals.ts";

const leaseMs = 30_000;

interface Place {
  readonly store: Store;
  readonly clock: VirtualClock;
  /** Writes to a column of all partitions, as something else would. */
  damage(column: RegExp, value: number): Promise<void>;
}

async function within(open: VandalKind["open"], use: (place: Place) => Promise<void>): Promise<void> {
  const [vandal, clock] = [await open(), new VirtualClock()];
  const store = await vandal.store.open({ namespace: "default", clock, log: silentLogger });
  try {
    await store.migrate();
    await use({ store, clock, damage: (column, value) => damage(vandal, column, value) });
  } finally {
    await store.close();
    await vandal.close();
  }
}

async function damage(vandal: Vandal, name: RegExp, value: number): Promise<void> {
  const columns = await vandal.columns();
  const found = columns.filter(({ table, column }) => table.endsWith("partitions") && name.test(column));
  assert.equal(found.length, 1, `columns like ${name}`);
  for (const column of found) await vandal.write(column, value);
}

const acquire = (store: Store, owner: string, partitions: number) =>
  store.acquirePartitions({ owner, leaseMs, partitions, want: partitions });

/** The jobs of each grant: those that were named before, then those that are due and can be named and settled. */
async function publishAll(store: Store, owner: string, partitions: number): Promise<string[][]> {
  const grants = await acquire(store, owner, partitions);
  return Promise.all(
    grants.map(async ({ partition, epoch, named }) => {
      const { jobs } = await store.partitionDue({ partition, aheadMs: 0, limit: 10, after: null });
      const write = { owner, partition, epoch, mark: null, aheadMs: 0 };
      const name = jobs.map(({ id, version }) => ({ id, version }));
      const first = await store.checkpoint({ ...write, settled: [], name });
      const all = [...named, ...first.named];
      const settled = all.map(({ id, token }) => ({ id, token, outcome: succeed }));
      const { finished } = await store.checkpoint({ ...write, settled, name: [] });
      assert.ok(finished.every(({ outcome }) => outcome === "written"));
      return all.map(({ id }) => id);
    }),
  );
}

const relayed = (id: string, slot: number) => newJob(id, { relayed: true, slot });

/** Jobs at both ends of two partitions; the first of each is named by a relay that is gone. */
async function prepare(store: Store): Promise<void> {
  await store.enqueue({ jobs: [relayed("named-0", 0), relayed("named-1", 512)] });
  for (const { partition, epoch } of await acquire(store, "gone", 2)) {
    const name = [{ id: `named-${partition}`, version: 1 }];
    const write = { owner: "gone", partition, epoch, settled: [], mark: null, aheadMs: 0 };
    assert.equal((await store.checkpoint({ ...write, name })).named.length, 1);
  }
  await store.enqueue({ jobs: [relayed("due-0", 511), relayed("due-1", 1023)] });
}

const published = [
  ["named-0", "due-0"],
  ["named-1", "due-1"],
];

function onStore({ name, skip, open }: VandalKind): void {
  describe(`partitions that something else has written to (${name})`, { skip }, () => {
    for (const column of ["first_slot", "end_slot"])
      for (const value of [-7, 0, 300, 2_000_000_000])
        test(`${column} = ${value}: the next owner publishes the jobs of its own slots`, () =>
          within(open, async ({ store, clock, ...place }) => {
            await prepare(store);
            await place.damage(new RegExp(column), value);
            await clock.advance(leaseMs + 1);
            assert.deepEqual(await publishAll(store, "next", 2), published);
            const { partitions } = await store.partitions();
            assert.deepEqual(
              partitions.map(({ firstSlot, endSlot }) => [firstSlot, endSlot]),
              [
                [0, 512],
                [512, 1024],
              ],
            );
          }));

    test("a lease of years is free, and one of a day is held", () =>
      within(open, async ({ store, ...place }) => {
        await prepare(store);
        assert.deepEqual(await acquire(store, "next", 2), []);
        await place.damage(/lease_until/, 9e15);
        const { partitions } = await store.partitions();
        assert.deepEqual(
          partitions.map(({ owner }) => owner),
          [null, null],
        );
        assert.deepEqual(await publishAll(store, "next", 2), published);
        const dayMs = 86_400_000;
        const held = partitions.map(({ partition, epoch }) => ({ partition, epoch: epoch + 1 }));
        const renewed = await store.renewPartitions({ owner: "next", leaseMs: dayMs, held });
        assert.deepEqual(renewed, ["renewed", "renewed"]);
        assert.deepEqual(await acquire(store, "other", 2), []);
      }));

    test("an epoch that cannot rise counts from 1 again", () =>
      within(open, async ({ store, clock, ...place }) => {
        await prepare(store);
        await place.damage(/epoch/, maxCount);
        await clock.advance(leaseMs + 1);
        assert.deepEqual(await publishAll(store, "next", 2), published);
        await clock.advance(leaseMs + 1);
        const grants = await acquire(store, "last", 2);
        assert.deepEqual(
          grants.map(({ epoch }) => epoch),
          [2, 2],
        );
      }));

    test("a lease of years does not keep the namespace from being cut into more partitions", () =>
      within(open, async ({ store, ...place }) => {
        await prepare(store);
        await place.damage(/lease_until/, 9e15);
        assert.deepEqual(await publishAll(store, "next", 4), [
          ["named-0"],
          ["due-0"],
          ["named-1"],
          ["due-1"],
        ]);
      }));

    test("a partition of a number that there is not is replaced by the one that is missing", () =>
      within(open, async ({ store, clock, ...place }) => {
        await store.enqueue({ jobs: [relayed("due", 5)] });
        const [{ epoch: before } = { epoch: 0 }] = await acquire(store, "gone", 1);
        await place.damage(/^partition/, 7);
        assert.deepEqual((await store.partitions()).partitions, []);
        await clock.advance(leaseMs + 1);
        assert.deepEqual(await publishAll(store, "next", 1), [["due"]]);
        const { partitions } = await store.partitions();
        assert.deepEqual(
          partitions.map(({ partition, epoch }) => ({ partition, epoch })),
          [{ partition: 0, epoch: before + 1 }],
        );
      }));
  });
}

for (const kind of vandals) onStore(kind);
