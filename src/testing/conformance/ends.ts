import assert from "node:assert/strict";
import type { ScanFilter, ScanParams } from "../../store/questions.ts";
import type { Store } from "../../store/store.ts";
import {
  type ConformanceTest,
  die,
  hour,
  later,
  lose,
  minute,
  newJob,
  type Scene,
  second,
  succeed,
} from "./scene.ts";

const byEnd: Omit<ScanParams, "filter"> = {
  by: "ended",
  order: "oldest",
  limit: 1_000,
  lookAt: 10_000,
  cursor: null,
};

async function found(store: Store, filter: ScanFilter, order: ScanParams["order"] = "oldest") {
  const { jobs, cursor } = await store.scan({ ...byEnd, order, filter });
  assert.equal(cursor, null, "everything was looked at");
  return jobs.map(({ id }) => id);
}

const keptAnHour = {
  ...{ succeededMs: hour, cancelledMs: hour, deadMs: hour, lostMs: hour },
  ...{ nodesMs: hour, occurrencesMs: hour, limit: 100 },
};

/** All pages of a scan, and how many jobs were looked at. */
async function inPages(store: Store, params: Omit<ScanParams, "cursor">) {
  const seen: string[] = [];
  let looked = 0;
  let cursor: string | null = null;
  do {
    const page = await store.scan({ ...params, cursor });
    assert(page.looked <= params.lookAt && page.jobs.length <= page.looked);
    assert(page.cursor === null || page.looked > 0, "it comes forward");
    seen.push(...page.jobs.map(({ id }) => id));
    looked += page.looked;
    cursor = page.cursor;
  } while (cursor !== null);
  return { seen, looked };
}

/** One of each end, enqueued in another order than they end: dead, succeeded, cancelled, lost. Others have not ended. */
async function endAll(scene: Scene): Promise<void> {
  await scene.add(newJob("c", { delayMs: hour }), newJob("waits", { delayMs: hour }));
  await scene.add(newJob("s", { queue: "q1" }));
  const claimer = scene.claimer();
  const held = await claimer.one();
  await scene.run(newJob("d"), die);
  await scene.advance(minute);
  await claimer.finish(held, succeed);
  await scene.advance(minute);
  await scene.cancel("c");
  await scene.advance(minute);
  await scene.run(newJob("x", { delivery: "at-most-once" }), lose);
  await scene.add(newJob("a"));
  await scene.claimer("other").one();
}

export function endTests(test: ConformanceTest): void {
  test("jobs are found in the order of their ends, whenever they were enqueued", async (scene) => {
    assert.deepEqual(await found(scene.store, {}), []);
    await endAll(scene);
    assert.deepEqual(await found(scene.store, {}), ["d", "s", "c", "x"]);
    assert.deepEqual(await found(scene.store, {}, "newest"), ["x", "c", "s", "d"]);
    assert.deepEqual(await found(scene.store, { states: ["waiting", "cancelled", "dead"] }), ["d", "c"]);
    assert.deepEqual(await found(scene.store, { states: ["waiting"] }), []);
    assert.deepEqual(await found(scene.store, { states: [] }), []);
    assert.deepEqual(await found(scene.store, { queues: ["q1"] }), ["s"]);
    assert.deepEqual(await found(scene.store, { ids: ["x", "d", "a"] }), ["d", "x"]);
    assert.deepEqual(await found(scene.store, { error: "broken" }), ["d"]);
  });

  test("only what ended within the span is looked at", async (scene) => {
    await endAll(scene);
    const [s, c] = await Promise.all([scene.job("s"), scene.job("c")]);
    assert(s.finishedAt !== null && c.finishedAt !== null);
    const filter = { endedAfter: s.finishedAt, endedBefore: later(c.finishedAt, 1) };
    const page = await scene.store.scan({ ...byEnd, filter });
    assert.deepEqual([page.jobs.map(({ id }) => id), page.looked, page.cursor], [["s", "c"], 2, null]);
    assert.deepEqual(await found(scene.store, { endedBefore: s.finishedAt }), ["d"]);
    assert.deepEqual(await found(scene.store, { endedAfter: c.finishedAt }, "newest"), ["x", "c"]);
  });

  test("a job with a retention of its own is among them", async (scene) => {
    const retention = { succeededMs: 9 * hour, cancelledMs: hour, deadMs: 5 * hour, lostMs: null };
    const own = (id: string) => newJob(id, { retention });
    await scene.run(own("s"), succeed);
    await scene.advance(second);
    await scene.run(newJob("d1"), die);
    await scene.advance(second);
    await scene.run(own("d2"), die);
    await scene.advance(second);
    await scene.add(newJob("c", { retention, delayMs: hour }));
    await scene.cancel("c");
    assert.deepEqual(await found(scene.store, {}), ["s", "d1", "d2", "c"]);
    assert.deepEqual(await found(scene.store, {}, "newest"), ["c", "d2", "d1", "s"]);
    await scene.advance(2 * hour);
    await scene.store.prune(keptAnHour);
    assert.deepEqual(await found(scene.store, {}), ["s", "d2"]);
    await scene.redrive("d2");
    assert.deepEqual(await found(scene.store, {}), ["s"]);
    await scene.store.remove({ select: { ids: ["s"] }, reason: null });
    assert.deepEqual(await found(scene.store, {}), []);
  });

  test(
    "a job that is kept for its unique key is among them until it is forgotten",
    async (scene) => {
      await scene.run(newJob("k", { unique: { key: "key", forMs: 5 * hour } }), succeed);
      await scene.advance(2 * hour);
      await scene.store.prune(keptAnHour);
      await scene.run(newJob("a"), succeed);
      assert.deepEqual(await found(scene.store, {}), ["k", "a"]);
      await scene.advance(4 * hour);
      await scene.store.prune(keptAnHour);
      assert.deepEqual(await found(scene.store, {}), []);
    },
    { capability: "acrossSlots", because: "unique keys need them" },
  );

  test("a redriven job stands at its latest end", async (scene) => {
    await scene.run(newJob("a"), die);
    await scene.advance(minute);
    await scene.run(newJob("b"), die);
    await scene.advance(minute);
    await scene.redrive("a");
    assert.deepEqual(await found(scene.store, {}), ["b"]);
    const claimer = scene.claimer();
    await claimer.finish(await claimer.one(), die);
    assert.deepEqual(await found(scene.store, {}), ["b", "a"]);
  });

  for (const order of ["newest", "oldest"] as const) {
    test(`many ends, also in one instant, are found once each in pieces, ${order} first`, async (scene) => {
      const ids = Array.from({ length: 30 }, (_, n) => `j${String(n).padStart(2, "0")}`);
      for (const [start, outcome] of [
        [0, succeed],
        [10, die],
        [20, succeed],
      ] as const) {
        await scene.add(...ids.slice(start, start + 10).map((id) => newJob(id)));
        const claimer = scene.claimer(`from ${start}`);
        const claimed = await claimer.take({ limit: 10 });
        await scene.store.finish({
          claimer: claimer.id,
          finishes: claimed.map(({ id, token }) => ({ id, token, outcome })),
        });
        if (start === 0) await scene.advance(minute);
      }
      const ends = new Map<string, number>();
      for (const { id, finishedAt } of await scene.store
        .get({ ids })
        .then((jobs) => jobs.flatMap((job) => job ?? [])))
        ends.set(id, finishedAt?.getTime() ?? 0);
      const sign = order === "oldest" ? 1 : -1;
      const inOrder = (a: string, b: string) =>
        sign * ((ends.get(a) ?? 0) - (ends.get(b) ?? 0) || (a < b ? -1 : 1));
      const check = (seen: readonly string[], what: string) => {
        // Between slots, there is no order within an instant.
        const { acrossSlots } = scene.store.capabilities;
        const own = (id: string) => (acrossSlots ? id : ends.get(id));
        assert.deepEqual(seen.toSorted(), ids, what);
        assert.deepEqual(seen.map(own), ids.toSorted(inOrder).map(own), what);
      };
      check(await found(scene.store, {}, order), "whole");
      for (const [limit, lookAt] of [
        [1, 3],
        [3, 7],
        [7, 3],
        [100, 4],
      ] as const) {
        const { seen, looked } = await inPages(scene.store, { ...byEnd, filter: {}, order, limit, lookAt });
        check(seen, `${limit} of ${lookAt}`);
        assert(looked >= 30);
      }
      const dead = await inPages(scene.store, {
        ...byEnd,
        filter: { error: "broken" },
        order,
        limit: 4,
        lookAt: 4,
      });
      assert.deepEqual(dead.seen.toSorted(), ids.slice(10, 20));
    });
  }

  test("the cursor of a scan in the order of enqueueing is refused, and the other way round", async (scene) => {
    for (const id of ["a", "b"]) await scene.run(newJob(id), die);
    const page = { ...byEnd, filter: {}, limit: 1 };
    const ends = (await scene.store.scan(page)).cursor;
    const plain = (await scene.store.scan({ ...page, by: "enqueued" })).cursor;
    assert(ends !== null && plain !== null);
    const refused = { name: "EscapementError", code: "invalid-cursor" };
    await assert.rejects(scene.store.scan({ ...page, cursor: plain }), refused);
    await assert.rejects(scene.store.scan({ ...page, by: "enqueued", cursor: ends }), refused);
  });

  test("a namespace sees its own ends only", async (scene) => {
    const other = await scene.openOther();
    await scene.run(newJob("a"), die);
    assert.deepEqual(await found(other, {}), []);
  });
}
