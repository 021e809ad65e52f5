import assert from "node:assert/strict";
import type { NewAuditEntry } from "../../store/audit.ts";
import { errorHeadLength, maxTrailLength, type ScanFilter, type ScanParams } from "../../store/questions.ts";
import type { Store } from "../../store/store.ts";
import {
  assertAbout,
  type ConformanceTest,
  die,
  hour,
  later,
  lose,
  minute,
  newJob,
  type Scene,
  succeed,
} from "./scene.ts";

const refused = { name: "EscapementError", code: "invalid-cursor" };
const wide: Omit<ScanParams, "filter"> = { order: "oldest", limit: 1_000, lookAt: 10_000, cursor: null };

async function found(store: Store, filter: ScanFilter): Promise<string[]> {
  const { jobs, cursor } = await store.scan({ ...wide, filter });
  assert.equal(cursor, null, "everything was looked at");
  return jobs.map(({ id }) => id);
}

/** Jobs in every state: w waits, l waits for later, a is active, s succeeded, d is dead, x is lost, c is cancelled, b is blocked. */
async function furnish(scene: Scene): Promise<void> {
  await scene.run(newJob("s", { tags: ["Blue"] }), succeed);
  const error = JSON.stringify({ name: "TimeoutError", message: 'no answer from "db-7" after 30 s' });
  await scene.run(newJob("d", { queue: "q1" }), { kind: "die", reason: "5 attempts failed", error });
  await scene.run(newJob("x", { delivery: "at-most-once" }), lose);
  await scene.add(newJob("a", { queue: "q1" }));
  await scene.claimer().one();
  await scene.add(
    newJob("w", { input: '{"customer":"Zoë \\"Z\\" Ünal"}' }),
    newJob("l", { name: "other", delayMs: hour, tags: ["green"] }),
    newJob("c"),
    newJob("b", { after: ["l"] }),
  );
  await scene.cancel("c", "not needed");
}

export function scanTests(test: ConformanceTest): void {
  test("a sketch of a job says what the job says", async (scene) => {
    await furnish(scene);
    const { jobs } = await scene.store.scan({ ...wide, filter: {} });
    assert.deepEqual(
      jobs.map(({ id }) => id),
      ["s", "d", "x", "a", "w", "l", "c", "b"],
    );
    for (const { errorHead, ...sketch } of jobs) {
      const job = await scene.job(sketch.id);
      const same = Object.fromEntries(Object.keys(sketch).map((key) => [key, job[key as keyof typeof job]]));
      assert.deepEqual(sketch, same);
      assert.equal(errorHead, job.error?.slice(0, errorHeadLength) ?? null);
    }
  });

  test("of a long error there is the beginning", async (scene) => {
    const error = JSON.stringify({ name: "Error", message: "ä🕰️".repeat(400) });
    await scene.run(newJob("a"), { kind: "die", reason: "r", error });
    const { jobs } = await scene.store.scan({ ...wide, filter: {} });
    assert.equal(jobs[0]?.errorHead, error.slice(0, errorHeadLength));
  });

  test("every term of a filter narrows, those of list among them", async (scene) => {
    await furnish(scene);
    const now = await scene.now();
    const cases: [ScanFilter, string[]][] = [
      [{ states: ["dead", "lost"] }, ["d", "x"]],
      [{ states: ["waiting", "blocked"] }, ["w", "l", "b"]],
      [{ states: [] }, []],
      [{ ids: ["d", "w", "nobody"] }, ["d", "w"]],
      [{ ids: ["d", "w"], states: ["dead"] }, ["d"]],
      [{ names: ["other"] }, ["l"]],
      [{ queues: ["q1"] }, ["d", "a"]],
      [{ tags: ["green"] }, ["l"]],
      [{ deliveries: ["at-most-once"] }, ["x"]],
      [{ runAfter: later(now, minute) }, ["l"]],
      [{ endedAfter: later(now, -hour) }, ["s", "d", "x", "c"]],
      [{ endedBefore: later(now, hour) }, ["s", "d", "x", "c"]],
      [{ endedBefore: later(now, -hour) }, []],
      [{ endedAfter: later(now, hour) }, []],
      [{ endedAfter: later(now, -hour), states: ["waiting"] }, []],
      [{ error: "timeout" }, ["d"]],
      [{ error: "NO ANSWER" }, ["d"]],
      [{ error: 'from "db-7"' }, ["d"]],
      [{ error: "attempts failed" }, ["d"]],
      [{ error: "nobody knows" }, ["x"]],
      [{ error: "zoë" }, []],
      [{ error: "%" }, []],
      [{ error: "_" }, []],
      [{ text: "ZOë" }, ["w"]],
      [{ text: 'zoë "z"' }, ["w"]],
      [{ text: '"customer":' }, ["w"]],
      [{ text: "blue" }, ["s"]],
      [{ text: "reen" }, ["l"]],
      [{ text: "db-7" }, ["d"]],
      [{ text: "not needed" }, ["c"]],
      [{ text: "timeout", states: ["waiting"] }, []],
      [{ text: "'; drop table jobs; --" }, []],
    ];
    for (const [filter, expected] of cases)
      assert.deepEqual(await found(scene.store, filter), expected, JSON.stringify(filter));
  });

  test("bounds of ends: after is inclusive, before exclusive", async (scene) => {
    await scene.run(newJob("a"), die);
    const end = (await scene.job("a")).finishedAt;
    assert(end !== null);
    assert.deepEqual(await found(scene.store, { endedAfter: end }), ["a"]);
    assert.deepEqual(await found(scene.store, { endedBefore: end }), []);
    assert.deepEqual(await found(scene.store, { endedAfter: end, endedBefore: later(end, 1_000) }), ["a"]);
  });

  for (const order of ["newest", "oldest"] as const) {
    test(`a scan, ${order} first, looks at no more than it is told, says how far it came, and goes on from there`, async (scene) => {
      const ids = Array.from({ length: 25 }, (_, n) => `j${n}`);
      await scene.add(...ids.map((id, n) => newJob(id, n % 10 === 0 ? { name: "rare" } : {})));
      const seen: string[] = [];
      let looked = 0;
      let cursor: string | null = null;
      do {
        const page = await scene.store.scan({
          filter: { names: ["rare"] },
          order,
          limit: 2,
          lookAt: 4,
          cursor,
        });
        assert(page.looked <= 4 && page.jobs.length <= page.looked);
        assert(page.cursor === null || page.looked > 0, "it comes forward");
        seen.push(...page.jobs.map(({ id }) => id));
        looked += page.looked;
        cursor = page.cursor;
        if (looked === 8) await scene.add(newJob("newcomer"));
      } while (cursor !== null);
      const expected = ["j0", "j10", "j20"];
      assert.deepEqual(seen, order === "oldest" ? expected : expected.toReversed());
      assert(looked >= 25);
    });
  }

  test("a scan in pieces finds every job once", async (scene) => {
    const ids = Array.from({ length: 40 }, (_, n) => `j${n}`);
    await scene.add(...ids.map((id, n) => newJob(id, n % 2 === 0 ? {} : { delayMs: hour, tags: ["odd"] })));
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const page = await scene.store.scan({
        filter: { text: "odd" },
        order: "oldest",
        limit: 3,
        lookAt: 9,
        cursor,
      });
      seen.push(...page.jobs.map(({ id }) => id));
      cursor = page.cursor;
    } while (cursor !== null);
    assert.deepEqual(seen.toSorted(), ids.filter((_, n) => n % 2 === 1).toSorted());
  });

  test("a full page goes on behind its last job", async (scene) => {
    await scene.add(...["a", "b", "c"].map((id) => newJob(id)));
    const first = await scene.store.scan({ ...wide, limit: 2, filter: {} });
    assert.deepEqual([first.jobs.map(({ id }) => id), first.looked], [["a", "b"], 2]);
    const second = await scene.store.scan({ ...wide, limit: 2, filter: {}, cursor: first.cursor });
    assert.deepEqual([second.jobs.map(({ id }) => id), second.cursor], [["c"], null]);
    assert.equal((await scene.store.scan({ ...wide, limit: 3, filter: {} })).cursor, null);
  });

  test("a cursor of another question is refused", async (scene) => {
    const other = await scene.openOther();
    const jobs = ["a", "b"].map((id) => newJob(id));
    await scene.add(...jobs);
    await other.enqueue({ jobs });
    const page = { ...wide, limit: 1, filter: {} };
    const wrong = [
      "",
      "1",
      "abc",
      (await scene.store.list({ filter: {}, limit: 1, order: "oldest", cursor: null })).cursor,
      (await scene.store.scan({ ...page, order: "newest" })).cursor,
      (await other.scan(page)).cursor,
    ];
    for (const cursor of wrong) await assert.rejects(scene.store.scan({ ...page, cursor }), refused);
  });
}

export function depthTests(test: ConformanceTest): void {
  test("each queue tells what is due, due later, active and blocked, and how old the oldest due job is", async (scene) => {
    assert.deepEqual((await scene.store.depths()).queues, []);
    await scene.run(newJob("done", { queue: "empty" }), succeed);
    const now = await scene.now();
    await scene.add(newJob("held", { queue: "q2" }));
    await scene.claimer().one();
    await scene.add(
      newJob("old", { queue: "q2", runAt: later(now, -hour), priority: 0 }),
      newJob("urgent", { queue: "q2", name: "other", runAt: later(now, -minute), priority: 9 }),
      newJob("later", { queue: "q2", delayMs: hour }),
      newJob("child", { queue: "q1", after: ["later"] }),
      newJob("relayed", { queue: "q3", relayed: true, slot: 7, runAt: later(now, -2 * hour) }),
      newJob("tomorrow", { queue: "q3", relayed: true, slot: 8, delayMs: 24 * hour }),
    );
    const { queues, now: asked } = await scene.store.depths();
    assertAbout(asked, now);
    const none = { due: 0, later: 0, active: 0, blocked: 0, oldestDueAt: null, isExact: true };
    assert.deepEqual(queues, [
      { ...none, queue: "q1", blocked: 1 },
      { ...none, queue: "q2", due: 2, later: 1, active: 1, oldestDueAt: later(now, -hour) },
      { ...none, queue: "q3", due: 1, later: 1, oldestDueAt: later(now, -2 * hour) },
    ]);
  });

  test("a queue is as deep as all its jobs, whatever slot they are in", async (scene) => {
    const now = await scene.now();
    const jobs = Array.from({ length: 12 }, (_, n) =>
      newJob(`j${n}`, { runAt: later(now, (n - 8) * minute) }),
    );
    await scene.add(...jobs);
    const [depth] = (await scene.store.depths()).queues;
    assert.deepEqual([depth?.due, depth?.later, depth?.oldestDueAt], [9, 3, later(now, -8 * minute)]);
  });

  test("jobs of lanes count for their queue, and so do those that run alone", async (scene) => {
    const now = await scene.now();
    await scene.add(
      newJob("a", { concurrencyKey: "work:k", runAt: later(now, -minute) }),
      newJob("b", { concurrencyKey: "work:k", runAt: later(now, -hour) }),
      newJob("c", { rateKey: "work:r", delayMs: hour }),
      newJob("f", { queue: "q1", maxCrashes: 2, runAt: later(now, -hour) }),
    );
    const claimer = scene.claimer();
    const fragile = (await claimer.take()).find(({ id }) => id === "f");
    assert(fragile);
    await claimer.finish(fragile, { kind: "crash", reason: "its lease ran out" });
    const { queues } = await scene.store.depths();
    assert.deepEqual(
      queues.map(({ queue, due, later: notDue, active }) => [queue, due, notDue, active]),
      [
        ["default", 0, 1, 2],
        ["q1", 1, 0, 0],
      ],
    );
  });
}

export function noteTests(test: ConformanceTest): void {
  test("a note stands in the trail without a claimer, whatever the job's state, and also by an alias", async (scene) => {
    const unique = { key: "k", forMs: null };
    await scene.run(newJob("dead"), die);
    await scene.add(newJob("a", { unique }), newJob("alias", { unique }));
    await scene.store.note({ ids: ["alias", "nobody", "dead"], text: "ann: looked at it 🕰️" });
    const line = { kind: "log", claimer: null, text: "ann: looked at it 🕰️", error: null };
    const [own, ...more] = await scene.trail("a");
    assert.deepEqual({ ...own, ...line, attempt: 0, token: 0 }, own);
    assert.deepEqual(more, []);
    assertAbout(own?.at ?? null, await scene.now());
    const last = (await scene.trail("dead")).at(-1);
    assert.deepEqual({ ...last, ...line, attempt: 1, token: 1 }, last);
  });

  test("notes obey the length of a trail", async (scene) => {
    await scene.add(newJob("a"));
    for (let n = 0; n <= maxTrailLength; n += 1) await scene.store.note({ ids: ["a"], text: `note ${n}` });
    const trail = await scene.trail("a");
    assert.deepEqual([trail.length, trail[0]?.text], [maxTrailLength, "note 1"]);
  });
}

function entry(id: string, changes: Partial<NewAuditEntry> = {}): NewAuditEntry {
  return { id, actor: "ann", action: "cancel", target: "job:1", reason: null, outcome: null, ...changes };
}

const never = 1_000 * hour;
const keepAll = { succeededMs: never, cancelledMs: never, deadMs: never, lostMs: never, nodesMs: never };

export function auditTests(test: ConformanceTest): void {
  const ids = async (store: Store, filter = {}) =>
    (await store.audit({ filter, limit: 100, cursor: null })).entries.map(({ id }) => id);

  test("an entry is kept as it was written, with the store's time; its outcome may come later", async (scene) => {
    const whole = entry("1", { reason: 'because "ö" 🕰️\nand more', outcome: '{"cancelled":1}' });
    await scene.store.record({ entries: [whole, entry("2")] });
    await scene.advance(hour);
    await scene.store.record({ entries: [entry("2", { actor: "eve", outcome: '"done"' }), whole] });
    const { entries, cursor } = await scene.store.audit({ filter: {}, limit: 10, cursor: null });
    assert.deepEqual(
      entries.map(({ at: _, ...rest }) => rest),
      [entry("2", { outcome: '"done"' }), whole],
    );
    assert.equal(cursor, null);
    for (const { at } of entries) assertAbout(at, later(await scene.now(), -hour));
    await scene.store.record({ entries: [] });
  });

  test("the newest come first, in pages, while others are written", async (scene) => {
    const all = Array.from({ length: 7 }, (_, n) => `e${n}`);
    await scene.store.record({ entries: all.map((id) => entry(id)) });
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const page = await scene.store.audit({ filter: {}, limit: 3, cursor });
      seen.push(...page.entries.map(({ id }) => id));
      cursor = page.cursor;
      if (seen.length === 3) await scene.store.record({ entries: [entry("late")] });
    } while (cursor !== null);
    assert.deepEqual(seen, all.toReversed());
    assert.deepEqual((await ids(scene.store))[0], "late");
    for (const wrong of ["", "1", "abc~def"])
      await assert.rejects(scene.store.audit({ filter: {}, limit: 1, cursor: wrong }), refused);
  });

  test("every term of a filter narrows", async (scene) => {
    await scene.store.record({ entries: [entry("1"), entry("2", { actor: "bob", action: "pause" })] });
    await scene.advance(2 * hour);
    await scene.store.record({ entries: [entry("3", { target: "queue:mail" })] });
    const now = await scene.now();
    assert.deepEqual(await ids(scene.store, { actors: ["ann"] }), ["3", "1"]);
    assert.deepEqual(await ids(scene.store, { actors: ["ann", "bob"], actions: ["pause"] }), ["2"]);
    assert.deepEqual(await ids(scene.store, { targets: ["queue:mail"] }), ["3"]);
    assert.deepEqual(await ids(scene.store, { targets: [] }), []);
    assert.deepEqual(await ids(scene.store, { after: later(now, -hour) }), ["3"]);
    assert.deepEqual(await ids(scene.store, { before: later(now, -hour) }), ["2", "1"]);
  });

  test("old entries are forgotten in batches, and prune says whether there are more", async (scene) => {
    await scene.store.record({ entries: ["1", "2", "3"].map((id) => entry(id)) });
    await scene.advance(2 * hour);
    await scene.store.record({ entries: [entry("4")] });
    const prune = (auditMs?: number) =>
      scene.store.prune({
        ...keepAll,
        occurrencesMs: never,
        limit: 2,
        ...(auditMs === undefined ? {} : { auditMs }),
      });
    assert.deepEqual(await prune(), { pruned: 0, more: false });
    assert.deepEqual(await prune(3 * hour), { pruned: 0, more: false });
    assert.deepEqual(await ids(scene.store), ["4", "3", "2", "1"]);
    assert.deepEqual(await prune(hour), { pruned: 0, more: true });
    assert.deepEqual(await ids(scene.store), ["4", "3"]);
    assert.deepEqual(await prune(hour), { pruned: 0, more: false });
    assert.deepEqual(await ids(scene.store), ["4"]);
    await scene.store.record({ entries: [entry("1")] });
    assert.deepEqual(await ids(scene.store), ["1", "4"], "a forgotten id may come again");
  });

  test("a namespace sees its own entries only", async (scene) => {
    const other = await scene.openOther();
    await scene.store.record({ entries: [entry("1")] });
    await other.record({ entries: [entry("1", { actor: "bob" }), entry("2")] });
    assert.deepEqual(await ids(scene.store), ["1"]);
    assert.deepEqual(await ids(other), ["2", "1"]);
    const [own] = (await scene.store.audit({ filter: {}, limit: 1, cursor: null })).entries;
    assert.equal(own?.actor, "ann");
  });
}
