import assert from "node:assert/strict";
import { test } from "node:test";
import { defineJob, idempotencyKey, type Occurrence, type ScheduleSpec } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { StoreFactory } from "../../src/store/opening.ts";
import type { Store } from "../../src/store/store.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { override } from "../../src/testing/override.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { FaultyStore } from "./faulty.ts";
import { onEveryStore } from "./stores.ts";

const hour = 3_600_000;

/** The fates of a ledger, ranges with their counts. */
function fates(occurrences: readonly Occurrence[]): string[] {
  return occurrences.map(({ fate, count }) => (count === 1 ? fate : `${fate} × ${count}`));
}

onEveryStore("schedules", (bed) => {
  const runs: { at: string; fireAt: string; key: string }[] = [];
  let clock = new VirtualClock();
  const job = defineJob<string>({
    name: "tick",
    run: ({ job: { fireAt, idempotencyKey: key } }) => {
      runs.push({ at: new Date(clock.now()).toISOString(), fireAt: fireAt.toISOString(), key });
    },
  });

  // It wakes at the right moment by itself: what only a poll would find is found too late. And hours go by without much ado.
  const calm = { poll: "20m", lease: "1h" } as const;

  function app(options: object = {}, on = clock): TestEscapement {
    return new TestEscapement(
      { store: bed.store(), jobs: [job], log: silentLogger, namespace: "test", ...calm, ...options },
      on,
    );
  }

  function reset(): void {
    runs.length = 0;
    clock = new VirtualClock(new Date("2026-01-01T00:30:00Z"));
  }

  test("a schedule fires at its times, never early, once each, and every occurrence is accounted for", async () => {
    reset();
    await using one = app();
    await one.start();
    assert.equal(await one.schedule("hourly", { cron: "0 * * * *" }, job, "x"), "added");
    assert.equal(await one.schedule("hourly", { cron: "0 * * * *" }, job, "x"), "unchanged");
    await one.advance("3h");
    assert.deepEqual(
      runs.map(({ at, fireAt }) => [at, fireAt]),
      ["01", "02", "03"].map((h) => [`2026-01-01T${h}:00:00.000Z`, `2026-01-01T${h}:00:00.000Z`]),
    );
    const rows = await one.occurrences("hourly");
    assert.deepEqual(fates(rows), ["succeeded", "succeeded", "succeeded"]);
    assert.deepEqual([rows[0]?.lateMs, rows[0]?.jobId], [0, "{hourly}@2026-01-01T01:00:00.000Z"]);
    const [schedule] = await one.schedules();
    assert.deepEqual(
      [schedule?.fired, schedule?.nextAt?.toISOString(), schedule?.name],
      [3, "2026-01-01T04:00:00.000Z", "tick"],
    );
  });

  test("the key is made of schedule and time: two firings differ, two copies of one do not [B4, K3]", async () => {
    reset();
    await using one = app();
    await one.start();
    await one.schedule("hourly", { every: "1h" }, job, "x");
    await one.advance("2h");
    const expected = ["2026-01-01T01:00:00.000Z", "2026-01-01T02:00:00.000Z"].map((at) =>
      idempotencyKey({ namespace: "test", id: "", schedule: "hourly", fireAt: new Date(at) }),
    );
    assert.deepEqual(
      runs.map(({ key }) => key),
      expected,
    );
  });

  test("several nodes plan without a leader, and each occurrence is dispatched once [K1]", async () => {
    reset();
    const store = bed.store();
    const nodes = [1, 2, 3, 4, 5].map(() => app({ store }));
    for (const node of nodes) {
      await node.start();
      await node.schedule("minutely", { cron: "* * * * *" }, job, "x");
    }
    await clock.advance(10 * 60_000);
    assert.equal(runs.length, 10);
    assert.equal(new Set(runs.map(({ fireAt }) => fireAt)).size, 10);
    for (const node of nodes) await node[Symbol.asyncDispose]();
  });

  for (const [misfire, expected] of [
    ["once", ["skipped × 4", "succeeded"]],
    ["skip", ["skipped × 5"]],
    ["all", Array.from({ length: 5 }, () => "succeeded")],
  ] as const) {
    test(`after downtime the policy ${misfire} decides, and the schedule goes on [K5]`, async () => {
      reset();
      const store = bed.store();
      const before = app({ store });
      await before.start();
      await before.schedule("hourly", { cron: "0 * * * *", misfire }, job, "x");
      await before[Symbol.asyncDispose]();
      await clock.advance(5 * hour);
      assert.equal(runs.length, 0);
      await using after = app({ store });
      await after.start();
      await after.advance("5s");
      assert.deepEqual(fates(await after.occurrences("hourly")), expected);
      await after.advance("1h");
      assert.equal(fates(await after.occurrences("hourly")).at(-1), "succeeded");
    });
  }

  for (const [overlap, expected, active] of [
    ["allow", ["active", "active", "active", "active"], 4],
    ["skip", ["active", "skipped", "skipped", "skipped"], 1],
    ["queue-one", ["active", "blocked", "skipped", "skipped"], 1],
    ["replace", ["cancelled", "cancelled", "cancelled", "active"], 1],
  ] as const) {
    test(`overlap ${overlap}: a job that is not done when the next is due`, async () => {
      reset();
      const slow = defineJob<null>({
        name: "slow",
        run: ({ signal }) =>
          new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
      });
      await using one = app({ jobs: [slow] });
      await one.start();
      await one.schedule("minutely", { cron: "* * * * *", overlap }, slow, null);
      await one.clock.advance(4 * 60_000 + 5_000);
      const rows = await one.occurrences("minutely");
      assert.deepEqual(fates(rows), expected);
      assert.equal(await one.count({ states: ["active"] }), active);
      for (const row of rows.filter(({ fate }) => fate === "skipped"))
        assert.match(row.reason ?? "", /^overlap/);
    });
  }

  test("paused: nothing fires, what would have is one row, and it goes on after resuming", async () => {
    reset();
    await using one = app();
    await one.start();
    await one.schedule("hourly", { cron: "0 * * * *" }, job, "x");
    await one.advance("1h");
    assert.equal((await one.pauseSchedule("hourly")).paused, true);
    await one.advance("24h");
    assert.equal(runs.length, 1);
    await one.resumeSchedule("hourly");
    await one.advance("1h");
    assert.equal(runs.length, 2);
    const rows = await one.occurrences("hourly", { from: new Date("2026-01-01T00:00:00Z") });
    assert.deepEqual(fates(rows), ["succeeded", "skipped × 24", "succeeded"]);
    assert.equal(rows[1]?.reason, "paused");
  });

  test("an edit while running loses and doubles nothing", async () => {
    reset();
    await using one = app();
    await one.start();
    await one.schedule("s", { cron: "0 * * * *" }, job, "x");
    await one.advance("1h");
    assert.equal(await one.schedule("s", { cron: "30 * * * *" }, job, "y"), "changed");
    await one.advance("2h");
    assert.deepEqual(
      runs.map(({ fireAt }) => fireAt.slice(11, 16)),
      ["01:00", "02:30", "03:30"],
    );
    assert.equal(await one.unschedule("s"), true);
    assert.equal(await one.unschedule("s"), false);
    await one.advance("3h");
    assert.equal(runs.length, 3);
  });

  test("what was due under the old rules when they are changed is fired under them", async () => {
    reset();
    const store = bed.store();
    await using editor = app({ store });
    await editor.schedule("s", { cron: "0 * * * *" }, job, "x");
    await clock.advance(hour);
    assert.equal(await editor.schedule("s", { cron: "0 12 * * *" }, job, "x"), "changed");
    await editor.start();
    await editor.advance("1m");
    assert.deepEqual(
      runs.map(({ fireAt }) => fireAt.slice(11, 16)),
      ["01:00"],
    );
  });

  test("a planner wakes exactly at the next time, also of what it has just fired", async () => {
    reset();
    await using one = app({ poll: "1m" });
    await one.start();
    await one.schedule("often", { every: "7s" }, job, "x");
    await one.advance("70s");
    assert.equal(runs.length, 10);
    for (const { at, fireAt } of runs) assert.equal(at, fireAt);
  });

  test("a new rule without a job keeps the job, in a process that does not define it", async () => {
    reset();
    const store = bed.store();
    await using one = app({ store });
    await one.start();
    await one.schedule("s", { cron: "0 * * * *" }, job, "x", { tags: ["kept"], priority: 7 });
    await using editor = app({ store, jobs: [] });
    assert.equal(await editor.schedule("s", { cron: "15 * * * *" }, null), "changed");
    assert.equal(await editor.schedule("s", { cron: "15 * * * *" }, null), "unchanged");
    await one.advance("1h");
    assert.deepEqual(
      runs.map(({ fireAt }) => fireAt.slice(11, 16)),
      ["01:15"],
    );
    const [made] = (await one.list({ schedule: "s" })).jobs;
    assert.deepEqual([made?.tags, made?.priority, made?.input], [["kept"], 7, "x"]);
    await assert.rejects(editor.schedule("none", { cron: "0 * * * *" }, null), { code: "not-found" });
  });

  test("an edit of a paused schedule keeps on record what the pause has skipped", async () => {
    reset();
    await using one = app();
    await one.start();
    await one.schedule("s", { cron: "0 * * * *" }, job, "x");
    await one.pauseSchedule("s");
    await one.advance("3h");
    await one.schedule("s", { cron: "30 * * * *" }, job, "x");
    const rows = await one.occurrences("s", { from: new Date("2026-01-01T00:00:00Z") });
    assert.deepEqual(fates(rows), ["skipped × 3"]);
  });

  test("nodes with different definitions are noticed: error, code wins, store wins [K9]", async () => {
    reset();
    const store = bed.store();
    const other = defineJob<string>({ name: "other" });
    await using one = app({ store });
    await using two = app({ store, jobs: [job, other] });
    await one.schedule("s", { cron: "0 1 * * *" }, job, "x");
    const spec: ScheduleSpec = { cron: "0 2 * * *" };
    await assert.rejects(two.schedule("s", spec, job, "x", { conflict: "error" }), {
      code: "schedule-conflict",
    });
    assert.equal(await two.schedule("s", spec, job, "x", { conflict: "store-wins" }), "kept");
    assert.equal((await one.getSchedule("s"))?.spec.cron, "0 1 * * *");
    assert.equal(await two.schedule("s", spec, job, "x"), "changed");
    assert.equal((await one.getSchedule("s"))?.spec.cron, "0 2 * * *");
    await using three = app({ store, jobs: [job, other] });
    await assert.rejects(three.schedule("s", spec, other, "x"), {
      code: "schedule-conflict",
      message: /for job "tick"/,
    });
  });

  test("a disallowed name is recorded as skipped, with that reason; one that nobody knows stays waiting [K10]", async () => {
    reset();
    const unknown = defineJob<string>({ name: "unknown" });
    await using one = app({ disallow: ["tick"] });
    await one.start();
    await one.schedule("banned", { cron: "0 * * * *" }, job, "x");
    await one.schedule("orphan", { cron: "0 * * * *" }, unknown, "x");
    await one.advance("1h");
    const [banned] = await one.occurrences("banned");
    assert.deepEqual([banned?.fate, banned?.reason], ["skipped", "disallowed by configuration"]);
    const [orphan] = await one.occurrences("orphan");
    assert.deepEqual([orphan?.fate, orphan?.reason], ["waiting", "waits for a free worker with its handler"]);
  });

  test("an occurrence that fails for good is dead, and the schedule goes on; without a next time it retires [A4, A5]", async () => {
    reset();
    const failing = defineJob<null>({
      name: "failing",
      retry: { attempts: 1 },
      run: () => {
        throw new Error("no");
      },
    });
    await using one = app({ jobs: [failing] });
    await one.start();
    await one.schedule("s", { cron: "0 * * * *", endAt: new Date("2026-01-01T02:00:00Z") }, failing, null);
    await one.advance("5h");
    assert.deepEqual(fates(await one.occurrences("s")), ["dead", "dead"]);
    assert.equal((await one.getSchedule("s"))?.nextAt, null);
  });

  test("jitter moves runAt by a stable share, never fireAt; limit ends it [B9]", async () => {
    reset();
    await using one = app();
    await one.start();
    await one.schedule("spread", { cron: "0 * * * *", jitter: "10m", limit: 2 }, job, "x");
    await one.advance("6h");
    assert.equal(runs.length, 2);
    const late = runs.map(({ at, fireAt }) => Date.parse(at) - Date.parse(fireAt));
    assert.ok((late[0] ?? 0) > 0 && (late[0] ?? 0) < 600_000);
    assert.equal(late[0], late[1]);
    assert.equal((await one.getSchedule("spread"))?.fired, 2);
  });

  test("triggerNow runs it beside its regular times; backfill plans what was skipped, once", async () => {
    reset();
    await using one = app();
    await one.start();
    await one.schedule("hourly", { cron: "0 * * * *" }, job, "x");
    await one.pauseSchedule("hourly");
    await one.triggerNow("hourly");
    await one.runUntilIdle();
    assert.equal(runs.length, 1);
    await one.advance("4h");
    await one.resumeSchedule("hourly");
    const [from, to] = [new Date("2026-01-01T02:00:00Z"), new Date("2026-01-01T03:00:00Z")];
    const whole = { from: new Date("2026-01-01T00:00:00Z") };
    assert.deepEqual(fates(await one.occurrences("hourly", whole)), ["skipped × 4"]);
    assert.equal(await one.backfill("hourly", from, to), 2);
    assert.equal(await one.backfill("hourly", from, to), 0);
    const rows = await one.occurrences("hourly", whole);
    assert.equal(
      rows.reduce((sum, { count }) => sum + count, 0),
      4,
      "each is accounted for by one row",
    );
    assert.deepEqual([rows[0]?.fate, rows.at(-1)?.fate], ["skipped", "skipped"]);
    await one.runUntilIdle();
    assert.deepEqual(
      runs.slice(1).map(({ fireAt }) => fireAt.slice(11, 16)),
      ["02:00", "03:00"],
    );
    const filled = (await one.list({ schedule: "hourly" })).jobs.filter(
      ({ fireAt }) => fireAt <= to && fireAt >= from,
    );
    const now = one.clock.now();
    assert.deepEqual(
      filled.map(({ runAt }) => now - runAt.getTime() < 60_000),
      [true, true],
      "they are due when they are planned",
    );
    await one.advance("13s");
    const lateness = (await one.history({ step: "hour" })).points.map(({ lateMaxMs }) => lateMaxMs);
    assert(Math.max(...lateness) < 60_000, `${lateness} ms late`);
  });

  test("a store that fails in the middle of a fire skips nothing and doubles nothing [K6]", async () => {
    reset();
    const store = new FaultyStore(bed.store());
    await using one = app({ store, poll: "1s" });
    await one.start();
    await one.schedule("minutely", { cron: "* * * * *" }, job, "x");
    store.fail("refuse", ["fire", "dueSchedules"], 5);
    await one.advance("2m");
    store.fail("lose-reply", ["fire", "dueSchedules"], 5);
    await one.advance("2m");
    assert.equal(runs.length, 4);
    assert.equal(new Set(runs.map(({ fireAt }) => fireAt)).size, 4);
  });

  test("a call that hangs does not stop other schedules", async () => {
    reset();
    const hangs = Promise.withResolvers<void>();
    let calls = 0;
    const inner = bed.store();
    const store: StoreFactory = {
      async open(context) {
        const opened = await inner.open(context);
        const fire: Store["fire"] = async (params) => {
          calls += 1;
          if (calls <= 3) await hangs.promise;
          return opened.fire(params);
        };
        return override(opened, { fire });
      },
    };
    await using one = app({ store });
    await one.start();
    await one.schedule("first", { cron: "0 1 * * *" }, job, "x");
    await one.schedule("second", { cron: "1 1 * * *" }, job, "x");
    await one.advance("32m");
    assert.deepEqual(runs.map(({ fireAt }) => fireAt.slice(11, 16)).sort(), ["01:00", "01:01"]);
    hangs.resolve();
    await one.advance("1m");
    assert.equal(runs.length, 2, "what hung comes too late to fire again");
  });

  test("a clock that jumps by an hour, forward or back: nothing early, nothing twice, nothing missed [K5]", async () => {
    reset();
    await using one = app();
    await one.start();
    await one.schedule("hourly", { cron: "0 * * * *", misfire: "all" }, job, "x");
    await one.advance("2h");
    clock.jump(-hour);
    await one.advance("2h");
    clock.jump(hour);
    await one.advance("2h");
    const fired = runs.map(({ fireAt }) => fireAt.slice(11, 13)).map(Number);
    assert.deepEqual(
      fired,
      fired.map((_, index) => index + 1),
      "each hour once, in order",
    );
    assert.equal(fired.length, 6);
    for (const { at, fireAt } of runs) assert.ok(at >= fireAt, "never early by the clock it was fired under");
  });

  test("restarted over and over across its ticks, a schedule misses none [K5]", async () => {
    reset();
    const store = bed.store();
    const first = app({ store });
    await first.schedule("minutely", { cron: "* * * * *" }, job, "x");
    await first[Symbol.asyncDispose]();
    const restarts = 200;
    for (let n = 0; n < restarts; n++) {
      const node = app({ store });
      await node.start();
      await node.clock.advance(45_000);
      await node[Symbol.asyncDispose]();
      await clock.advance(16_000);
    }
    const fireTimes = runs.map(({ fireAt }) => fireAt);
    const spanMinutes = Math.floor((clock.now() - Date.UTC(2026, 0, 1, 0, 30)) / 60_000);
    assert.equal(new Set(fireTimes).size, fireTimes.length, "none twice");
    assert.ok(spanMinutes > 200);
    assert.ok(fireTimes.length >= spanMinutes - 1, `${fireTimes.length} of ${spanMinutes}`);
  });

  test("bad input is refused with a code, and nothing changes", async () => {
    reset();
    await using one = app();
    await one.schedule("s", { cron: "0 * * * *" }, job, "x");
    const before = await one.schedules();
    const refused: [string, () => Promise<unknown>][] = [
      ["invalid-cron", () => one.schedule("s", { cron: "61 * * * *" }, job, "x")],
      ["invalid-zone", () => one.schedule("s", { cron: "0 * * * *", timezone: "Mars" }, job, "x")],
      ["invalid-schedule", () => one.schedule("s", { cron: "0 0 30 2 *" }, job, "x")],
      ["invalid-schedule", () => one.schedule("s", { at: new Date("2020-01-01") }, job, "x")],
      ["invalid-schedule", () => one.schedule("s", { every: 1, lookback: "99w" }, job, "x")],
      [
        "invalid-option",
        () => one.schedule("s", { cron: "0 * * * *", overlapp: "skip" } as ScheduleSpec, job, "x"),
      ],
      ["invalid-name", () => one.schedule("a{b}", { every: 1 }, job, "x")],
      ["not-found", () => one.pauseSchedule("nobody")],
      ["invalid-option", () => one.backfill("s", new Date("2020-01-01"), new Date("2020-01-02"))],
      ["unknown-job", () => one.schedule("s", { every: 1 }, "nobody", "x")],
    ];
    for (const [code, call] of refused) await assert.rejects(call(), { code });
    assert.deepEqual(await one.schedules(), before);
    await one.schedule("often", { every: "1s" }, job, "x");
    await one.clock.advance(5 * hour);
    await assert.rejects(one.backfill("often", new Date("2026-01-01T00:30:00Z"), new Date(one.clock.now())), {
      code: "invalid-option",
      message: /at most 10000/,
    });
  });
});
