import assert from "node:assert/strict";
import type { NewOccurrence } from "../../store/schedules.ts";
import { assertAbout, type ConformanceTest, hour, later, minute, newJob } from "./scene.ts";
import { edit, fire, firing, ledger, planned, put, rule } from "./schedule-scene.ts";

export function fireTests(test: ConformanceTest): void {
  test("firing writes the ledger, adds the job and advances the schedule, all at once", async (scene) => {
    const fireAt = later(await scene.now(), -minute);
    const schedule = await put(scene.store, rule("s", fireAt));
    const answer = await fire(scene.store, firing(schedule, fireAt));
    assert.deepEqual(answer, { outcome: "fired", occurrences: ["added"] });
    const [row] = await ledger(scene, "s");
    assert(row);
    assertAbout(row.plannedAt, await scene.now(), "plannedAt");
    const jobId = `{s}@${fireAt.toISOString()}`;
    assert.deepEqual(row, {
      key: "s",
      fireAt,
      until: null,
      count: 1,
      fate: "planned",
      reason: null,
      jobId,
      plannedAt: row.plannedAt,
      node: "planner-1",
    });
    assert.deepEqual((await scene.job(jobId)).fireAt, fireAt);
    const [advanced] = await scene.store.schedules({ keys: null });
    assert.deepEqual([advanced?.nextAt, advanced?.version], [later(fireAt, hour), schedule.version]);
  });

  test("N planners that see the same due occurrence make one job of it [K1]", async (scene) => {
    const fireAt = later(await scene.now(), -minute);
    const schedule = await put(scene.store, rule("s", fireAt));
    const stores = [scene.store, await scene.open(), await scene.open(), await scene.open()];
    const answers = await Promise.all(
      stores.map((store, n) => fire(store, firing(schedule, fireAt), `planner-${n}`)),
    );
    assert.equal(answers.filter(({ outcome }) => outcome === "fired").length, 1);
    assert.equal((await ledger(scene, "s")).length, 1);
    assert.equal((await scene.claimer().take()).length, 1);
  });

  test("an occurrence that is already in the ledger keeps its row and adds no job [K2]", async (scene) => {
    const fireAt = later(await scene.now(), -minute);
    const schedule = await put(scene.store, rule("s", fireAt));
    await fire(scene.store, firing(schedule, fireAt));
    const before = await ledger(scene, "s");
    const [fired] = await scene.store.schedules({ keys: ["s"] });
    assert(fired);
    const edited = await put(scene.store, edit(fired, fireAt));
    const job = newJob("another", { schedule: "s" });
    const again = await fire(
      scene.store,
      firing(edited, fireAt, { occurrences: [{ ...planned("s", fireAt), job }] }),
    );
    assert.deepEqual(again, { outcome: "fired", occurrences: ["existing"] });
    assert.deepEqual(await ledger(scene, "s"), before);
    assert.equal(await scene.stateOf("another"), null);
  });

  test("firing with an old version, an old time, or while paused is stale and changes nothing", async (scene) => {
    const fireAt = later(await scene.now(), -minute);
    const schedule = await put(scene.store, rule("s", fireAt));
    assert.equal((await fire(scene.store, firing(schedule, later(fireAt, -hour)))).outcome, "stale");
    const paused = await put(scene.store, edit(schedule, fireAt, { paused: true }));
    assert.deepEqual(await fire(scene.store, firing(schedule, fireAt)), {
      outcome: "stale",
      occurrences: [],
    });
    assert.equal((await fire(scene.store, firing(paused, fireAt))).outcome, "stale");
    const gone = await fire(scene.store, { ...firing(schedule, fireAt), key: "nobody" });
    assert.equal(gone.outcome, "stale");
    assert.deepEqual(await ledger(scene, "s"), []);
    assert.deepEqual(await scene.store.count({ filter: {}, by: [] }), [{ count: 0 }]);
    assert.deepEqual((await scene.store.schedules({ keys: null }))[0]?.nextAt, fireAt);
  });

  test("firing repeated after a lost reply is stale: the first one stands [K2]", async (scene) => {
    const fireAt = later(await scene.now(), -minute);
    const params = firing(await put(scene.store, rule("s", fireAt)), fireAt);
    await fire(scene.store, params);
    assert.equal((await fire(scene.store, params)).outcome, "stale");
    assert.equal((await ledger(scene, "s")).length, 1);
  });

  test("skipped occurrences are on record with their reason, and a long outage is one row", async (scene) => {
    const now = await scene.now();
    const first = later(now, -9 * hour);
    const schedule = await put(scene.store, rule("s", first));
    const skipped: NewOccurrence = {
      fireAt: first,
      until: later(now, -2 * hour),
      count: 8,
      fate: "skipped",
      reason: "misfire: once",
      job: null,
    };
    const latest = planned("s", later(now, -hour));
    const occurrences = [latest, skipped];
    const answer = await fire(scene.store, firing(schedule, first, { occurrences, advanceTo: null }));
    assert.deepEqual(answer.occurrences, ["added", "added"]);
    const rows = await ledger(scene, "s");
    assert.deepEqual(
      rows.map(({ fireAt, until, count, fate, reason, jobId }) => ({
        fireAt,
        until,
        count,
        fate,
        reason,
        jobId,
      })),
      [
        {
          fireAt: first,
          until: later(now, -2 * hour),
          count: 8,
          fate: "skipped",
          reason: "misfire: once",
          jobId: null,
        },
        {
          fireAt: latest.fireAt,
          until: null,
          count: 1,
          fate: "planned",
          reason: null,
          jobId: latest.job?.id,
        },
      ],
    );
    assert.equal((await scene.store.schedules({ keys: null }))[0]?.nextAt, null);
    assert.deepEqual((await scene.store.dueSchedules({ limit: 10 })).due, []);
  });

  test("the ledger is read by time, from inclusive, to exclusive, up to a limit, and outlives its schedule", async (scene) => {
    const start = later(await scene.now(), -9 * hour);
    const times = [0, 1, 2, 3].map((n) => later(start, n * hour));
    const schedule = await put(scene.store, rule("s", start));
    await fire(scene.store, firing(schedule, start, { occurrences: times.map((at) => planned("s", at)) }));
    await scene.store.removeSchedule({ key: "s" });
    const read = async (from: number, to: number, limit = 100) =>
      (
        await scene.store.occurrences({
          key: "s",
          from: later(start, from * hour),
          to: later(start, to * hour),
          limit,
        })
      ).map(({ fireAt }) => fireAt);
    assert.deepEqual(await read(1, 3), times.slice(1, 3));
    assert.deepEqual(await read(0, 9, 2), times.slice(0, 2));
    assert.deepEqual(await read(7, 9), []);
    assert.deepEqual(await scene.store.occurrences({ key: "x", from: start, to: new Date(), limit: 9 }), []);
  });

  test("an occurrence whose job is absorbed is accounted for by the job that stands for it", async (scene) => {
    const unique = { key: "k", forMs: null };
    await scene.add(newJob("holder", { unique }));
    const fireAt = later(await scene.now(), -minute);
    const schedule = await put(scene.store, rule("s", fireAt));
    const occurrence = { ...planned("s", fireAt), job: newJob("absorbed", { unique, schedule: "s" }) };
    await fire(scene.store, firing(schedule, fireAt, { occurrences: [occurrence] }));
    assert.equal((await ledger(scene, "s"))[0]?.jobId, "holder");
  });

  test("many schedules fire in one call, each by itself", async (scene) => {
    const fireAt = later(await scene.now(), -minute);
    const keys = Array.from({ length: 50 }, (_, n) => `s${n}`);
    const records = await Promise.all(keys.map((key) => put(scene.store, rule(key, fireAt))));
    const fires = records.map((record) => firing(record, fireAt));
    const stale = fires.map((one, n) => (n === 7 ? { ...one, version: 9 } : one));
    const results = await scene.store.fire({ node: "planner-1", fires: stale });
    assert.deepEqual(
      results.map(({ outcome }) => outcome),
      keys.map((_, n) => (n === 7 ? "stale" : "fired")),
    );
    assert.equal((await scene.claimer().take()).length, 49);
  });

  test("schedules are read by key, some or all", async (scene) => {
    for (const key of ["c", "a", "b"]) await put(scene.store, rule(key, null));
    const keysOf = async (keys: readonly string[] | null) =>
      (await scene.store.schedules({ keys })).map(({ key }) => key);
    assert.deepEqual(await keysOf(null), ["a", "b", "c"]);
    assert.deepEqual(await keysOf(["c", "a", "x"]), ["a", "c"]);
    assert.deepEqual(await keysOf([]), []);
  });

  test("a schedule counts what it planned and knows its last job, over edits", async (scene) => {
    const fireAt = later(await scene.now(), -2 * hour);
    const schedule = await put(scene.store, rule("s", fireAt));
    assert.deepEqual([schedule.fired, schedule.lastJobId], [0, null]);
    const skipped: NewOccurrence = {
      ...planned("s", later(fireAt, minute)),
      fate: "skipped",
      reason: "why",
      job: null,
    };
    const occurrences = [planned("s", fireAt), skipped, planned("s", later(fireAt, 2 * minute))];
    await fire(scene.store, firing(schedule, fireAt, { occurrences }));
    const [fired] = await scene.store.schedules({ keys: null });
    assert(fired);
    assert.deepEqual([fired.fired, fired.lastJobId], [2, occurrences[2]?.job?.id]);
    const edited = await put(scene.store, edit(fired, fired.nextAt, { spec: '"new"' }));
    assert.deepEqual([edited.fired, edited.lastJobId], [2, occurrences[2]?.job?.id]);
  });

  test("an edit writes what was skipped meanwhile into the ledger, or nothing at all", async (scene) => {
    const fireAt = later(await scene.now(), -5 * hour);
    const schedule = await put(scene.store, rule("s", fireAt, { paused: true }));
    const skipped: NewOccurrence = {
      fireAt,
      until: later(fireAt, 4 * hour),
      count: 5,
      fate: "skipped",
      reason: "paused",
      job: null,
    };
    const resumed = edit(schedule, later(fireAt, 6 * hour), { skipped: [skipped] });
    assert.equal((await scene.store.putSchedule({ ...resumed, ifVersion: 7 })).outcome, "conflict");
    assert.deepEqual(await ledger(scene, "s"), []);
    await put(scene.store, resumed);
    const [row] = await ledger(scene, "s");
    assert.deepEqual([row?.fate, row?.reason, row?.count, row?.node], ["skipped", "paused", 5, "editor"]);
  });

  test("a backfill plans what was skipped, never what was planned, also on a paused or ended schedule", async (scene) => {
    const fireAt = later(await scene.now(), -5 * hour);
    const skipped: NewOccurrence = { ...planned("s", fireAt), fate: "skipped", reason: "misfire", job: null };
    const done = planned("s", later(fireAt, hour));
    const schedule = await put(scene.store, rule("s", fireAt));
    await fire(scene.store, firing(schedule, fireAt, { occurrences: [skipped, done], advanceTo: null }));
    const [over] = await scene.store.schedules({ keys: ["s"] });
    assert(over);
    const ended = await put(scene.store, edit(over, null, { paused: true }));
    const again = [planned("s", fireAt), done, planned("s", later(fireAt, 2 * hour))];
    const backfill = firing(ended, fireAt, {
      nextAt: null,
      advanceTo: null,
      occurrences: again,
      replaceSkipped: true,
    });
    assert.equal(
      (await fire(scene.store, { ...backfill, replaceSkipped: false })).outcome,
      "stale",
      "it is paused",
    );
    assert.deepEqual((await fire(scene.store, backfill)).occurrences, ["added", "existing", "added"]);
    assert.deepEqual((await fire(scene.store, backfill)).occurrences, ["existing", "existing", "existing"]);
    assert.deepEqual(
      (await ledger(scene, "s")).map(({ fate }) => fate),
      ["planned", "planned", "planned"],
    );
    assert.equal((await scene.claimer().take()).length, 3);
  });
}
