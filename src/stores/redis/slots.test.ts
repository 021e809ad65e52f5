import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testbed } from "../../../testbed/index.ts";
import { createEscapement } from "../../app/create.ts";
import { systemClock } from "../../clock.ts";
import { defineJob } from "../../definition.ts";
import { slotOf } from "../../id.ts";
import { silentLogger } from "../../log.ts";
import type { NewJob } from "../../store/jobs.ts";
import { slotCount } from "../../store/partitions.ts";
import type { Store } from "../../store/store.ts";
import { newJob, succeed } from "../../testing/conformance/scene.ts";
import { Link } from "./connection/link.ts";
import { Session } from "./session.ts";
import { newPrefix, openStore } from "./test/harness.ts";

const cluster = await testbed.redisCluster();
const context = { namespace: "n", clock: systemClock, log: silentLogger };
const open = (): Promise<Store> =>
  openStore({ url: cluster.url, prefix: newPrefix(cluster), slots: 3 }, context);
const placed = (id: string, changes: Partial<NewJob> = {}): NewJob =>
  newJob(id, { slot: slotOf(id), ...changes });
const names = [{ name: "work", concurrency: null, rate: null }];

describe("a namespace over three slots of a Cluster", { skip: cluster.skip }, () => {
  test("jobs of all slots are claimed, finished, listed, counted and pruned together", async () => {
    const store = await open();
    const ids = Array.from({ length: 300 }, (_, n) => `j${n}`);
    await store.enqueue({ jobs: ids.map((id) => placed(id)) });
    const taken: { id: string; token: number }[] = [];
    for (let sequence = 1; taken.length < ids.length; sequence += 1) {
      const claim = { claimer: "c", sequence, leaseMs: 60_000, limit: 40, queues: null, names, alone: false };
      const { jobs } = await store.claim(claim);
      assert(jobs.length > 0 && jobs.length <= 40);
      taken.push(...jobs);
    }
    assert.deepEqual(taken.map(({ id }) => id).toSorted(), ids.toSorted());
    const finishes = taken.map(({ id, token }) => ({ id, token, outcome: succeed }));
    const finished = await store.finish({ claimer: "c", finishes });
    assert(finished.every(({ outcome }) => outcome === "written"));
    const listed: string[] = [];
    let cursor: string | null = null;
    do {
      const page = await store.list({ filter: {}, limit: 70, order: "newest", cursor });
      listed.push(...page.jobs.map(({ id }) => id));
      cursor = page.cursor;
    } while (cursor !== null);
    assert.deepEqual(listed.toSorted(), ids.toSorted());
    assert.deepEqual(await store.count({ filter: { tags: [] }, by: ["state"] }), [
      { state: "succeeded", count: 300 },
    ]);
    const kept = { succeededMs: 0, cancelledMs: 0, deadMs: 0, lostMs: 0, nodesMs: 0, occurrencesMs: 0 };
    assert.deepEqual(await store.prune({ ...kept, limit: 1_000 }), { pruned: 300, more: false });
    await store.close();
  });

  test("a fragile job has no company, of its own slot nor of another [C5]", async () => {
    const store = await open();
    const ids = Array.from({ length: 12 }, (_, n) => `f${n}`);
    await store.enqueue({ jobs: ids.map((id) => placed(id, { maxCrashes: 2 })) });
    let sequence = 0;
    const claim = (alone: boolean) =>
      store.claim({
        claimer: "c",
        sequence: ++sequence,
        leaseMs: 60_000,
        limit: 50,
        queues: null,
        names,
        alone,
      });
    const { jobs } = await claim(false);
    const crash = { kind: "crash", reason: "its thread died" } as const;
    const finishes = jobs.map(({ id, token }) => ({ id, token, outcome: crash }));
    await store.finish({ claimer: "c", finishes });
    await store.enqueue({ jobs: Array.from({ length: 12 }, (_, n) => placed(`p${n}`)) });
    const groups: string[][] = [];
    while (groups.flat().length < 24 && sequence < 100)
      groups.push((await claim(true)).jobs.map(({ id }) => id));
    const withFragile = groups.filter((group) => group.some((id) => id.startsWith("f")));
    assert.deepEqual([withFragile.length, withFragile.flat().length], [12, 12]);
    assert.equal(groups.flat().length, 24);
    await store.close();
  });

  test("claims ahead in other slots do not overtake an at-most-once job for as long as they last", async () => {
    const store = await open();
    await store.enqueue({ jobs: [placed("once", { delivery: "at-most-once" })] });
    await store.enqueue({ jobs: Array.from({ length: 300 }, (_, n) => placed(`j${n}`)) });
    const taken: string[] = [];
    let isRoom = false;
    for (let sequence = 1; sequence <= 100 && !taken.includes("once"); sequence += 1) {
      // A worker that holds jobs has no room; one that has run out of them has.
      const [limit, ahead] = isRoom ? [1, 0] : [0, 10];
      const claim = {
        claimer: "c",
        sequence,
        leaseMs: 60_000,
        limit,
        ahead,
        queues: null,
        names,
        alone: false,
      };
      const { jobs } = await store.claim(claim);
      taken.push(...jobs.map(({ id }) => id));
      isRoom = jobs.length === 0;
    }
    await store.close();
    assert(taken.includes("once"));
    assert(taken.length < 150, `expected it before most others, got it after ${taken.length} of them`);
  });

  test("jobs with one tag lie together and may wait for each other; others may not", async () => {
    const store = await open();
    const [parent, child] = ["{order 7} pack", "{order 7} send"];
    await store.enqueue({ jobs: [placed(parent), placed(child, { after: [parent] })] });
    assert.equal((await store.get({ ids: [child] }))[0]?.state, "blocked");
    const stranger = ["a", "b", "c", "d", "e"].find((id) => placeOf(id) !== placeOf(child));
    assert(stranger !== undefined);
    await assert.rejects(store.enqueue({ jobs: [placed(stranger, { after: [parent] })] }), {
      code: "store-unsupported",
    });
    await store.close();
  });

  test("keys and limits are refused, by the store and before anything runs", async () => {
    const store = await open();
    assert.equal(store.capabilities.acrossSlots, false);
    const refused = { code: "store-unsupported" };
    await assert.rejects(
      store.enqueue({ jobs: [placed("a", { unique: { key: "k", forMs: null } })] }),
      refused,
    );
    await assert.rejects(store.enqueue({ jobs: [placed("a", { concurrencyKey: "k" })] }), refused);
    await assert.rejects(store.configureQueue({ queue: "q", concurrency: 1 }), refused);
    assert.equal((await store.configureQueue({ queue: "q", paused: true })).paused, true);
    await store.close();
    const job = defineJob<string>({
      name: "keyed",
      unique: { key: (input) => input, for: "pending" },
      run: () => undefined,
    });
    const url = `${cluster.url}?slots=3&prefix=${newPrefix(cluster)}`;
    await using app = createEscapement({ store: url, jobs: [job], log: silentLogger });
    await assert.rejects(app.start(), refused);
  });

  test("a partition lies within one slot: their number is a multiple of the slots'", async () => {
    const store = await open();
    const want = { owner: "o", leaseMs: 60_000, want: 99 };
    await assert.rejects(store.acquirePartitions({ ...want, partitions: 4 }), { code: "store-unsupported" });
    const grants = await store.acquirePartitions({ ...want, partitions: 6 });
    assert.equal(grants.length, 6);
    const ids = Array.from({ length: 60 }, (_, n) => `r${n}`);
    await store.enqueue({ jobs: ids.map((id) => placed(id, { relayed: true })) });
    const due = await Promise.all(
      grants.map(({ partition }) => store.partitionDue({ partition, aheadMs: 0, limit: 100, after: null })),
    );
    assert.deepEqual(due.flatMap(({ jobs }) => jobs.map(({ id }) => id)).toSorted(), ids.toSorted());
    for (const [n, { partition, epoch }] of grants.entries()) {
      const name = due[n]?.jobs.map(({ id, version }) => ({ id, version })) ?? [];
      const answer = await store.checkpoint({
        owner: "o",
        partition,
        epoch,
        settled: [],
        mark: null,
        name,
        aheadMs: 0,
      });
      assert.equal(answer.named.length, name.length);
    }
    await store.close();
  });

  test("every slot of the namespace has its place, in ranges that partitions never cross", () => {
    for (const slots of [1, 2, 3, 7, 16, slotCount]) {
      const session = spaceOf(slots);
      for (let slot = 0; slot < slotCount; slot += 1) {
        const place = session.placeOfSlot(slot);
        assert(slot >= Math.floor((place * slotCount) / slots));
        assert(slot < Math.floor(((place + 1) * slotCount) / slots));
      }
    }
  });
});

function spaceOf(slots: number): Session {
  // Nothing is called through it.
  const client = { status: "wait", on: () => undefined } as never;
  const link = new Link({
    client,
    owned: false,
    mode: "single",
    where: "",
    callTimeoutMs: 1,
    log: silentLogger,
  });
  return new Session({ link, prefix: "p", namespace: "n", slots, clock: null });
}

function placeOf(id: string): number {
  return spaceOf(3).placeOf(id);
}
