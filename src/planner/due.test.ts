import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { decideDue } from "./due.ts";
import { resolveSchedule, type ScheduleSpec } from "./schedule-spec.ts";

const minute = 60_000;
const start = Date.UTC(2026, 0, 1);

/** Works off everything due between `from` and `now`, step by step, as a planner does. */
function workOff(spec: ScheduleSpec, from: number, now: number) {
  const rules = resolveSchedule(spec);
  let next: number | null = rules.times.next(from - 1);
  let [planned, skipped, rows, steps] = [[] as number[], 0, 0, 0];
  for (let more = true; more && next !== null && next <= now; steps++) {
    const step = decideDue(rules, next, now);
    for (const decision of step.decisions) {
      rows += 1;
      if (decision.fate === "planned") planned.push(decision.fireAt);
      else skipped += decision.count;
    }
    ({ more } = step);
    next = step.advanceTo;
  }
  return { planned, skipped, rows, steps, next };
}

const outages: [string, number][] = [
  ["1 minute", minute],
  ["1 hour", 60 * minute],
  ["30 days", 30 * 1_440 * minute],
];

describe("what is due after downtime", () => {
  for (const [name, span] of outages) {
    const now = start + span + 30_000;
    const missed = span / minute + 1;

    test(`once: after ${name} the latest fires, the others are on record, the schedule goes on [K5]`, () => {
      const { planned, skipped, rows, next } = workOff({ every: "1m" }, start, now);
      assert.deepEqual(planned, [start + span]);
      assert.equal(skipped, missed - 1);
      assert.ok(rows <= 3, `a long outage is a row for a range, not ${rows}`);
      assert.equal(next, start + span + minute);
    });

    test(`skip: after ${name} nothing fires [K5]`, () => {
      const { planned, skipped, next } = workOff({ every: "1m", misfire: "skip" }, start, now);
      assert.deepEqual([planned, skipped, next], [[], missed, start + span + minute]);
    });

    test(`all: after ${name} each fires, oldest first, capped, a few at a step [K5]`, () => {
      const { planned, skipped, steps, next } = workOff(
        { every: "1m", misfire: "all", catchUp: 50 },
        start,
        now,
      );
      const expected = Math.min(missed, 50);
      assert.equal(planned.length, expected);
      assert.deepEqual(
        planned,
        planned.toSorted((a, b) => a - b),
      );
      assert.equal(planned.at(-1), start + span);
      assert.equal(skipped, missed - expected);
      assert.ok(steps >= expected / 10, "at a bounded rate");
      assert.equal(next, start + span + minute);
    });
  }

  test("what is only a little late was not missed: every policy fires it", () => {
    for (const misfire of ["once", "skip", "all"] as const) {
      const { planned } = workOff({ every: "1s", misfire }, start, start + 3_500);
      assert.equal(planned.length, 4, misfire);
    }
  });

  test("nothing older than the look-back fires", () => {
    const old = { cron: "0 3 * * *", lookback: "6h" } as const;
    const now = start + 20 * 60 * minute;
    assert.deepEqual(workOff(old, start, now).planned, []);
    assert.equal(workOff({ ...old, lookback: "24h" }, start, now).planned.length, 1);
  });

  test("an outage of a year of an every-second schedule is worked off in bounded steps", () => {
    const year = 365 * 86_400_000;
    const rules = resolveSchedule({ every: "1s" });
    const step = decideDue(rules, start, start + year);
    assert.deepEqual(
      step.decisions.map((decision) => (decision.fate === "skipped" ? decision.count : 1)),
      [100_000],
    );
    assert.ok(step.more);
  });
});
