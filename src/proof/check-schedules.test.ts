import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { check } from "./checker.ts";
import type { FinalJob, Operation } from "./history.ts";
import { matchRuns } from "./matching.ts";
import { broken, ended, history, kinds, type RunOptions, run } from "./test/hand-made.ts";

describe("schedules are matched by label, by ledger and blind", () => {
  /** Every second from 1 s on, taken away at 6 s: those of 2 s and 3 s must run, 1 s and 4 s to 6 s may. */
  const operations: Operation[] = [
    {
      kind: "schedule",
      schedule: "s",
      delivery: "at-least-once",
      everyMs: 1_000,
      invokedAtMs: 990,
      endedAtMs: 1_010,
      outcome: "ok",
    },
    { kind: "unschedule", schedule: "s", invokedAtMs: 6_000, endedAtMs: 6_010, outcome: "ok" },
  ];

  function occurrence(fireAt: number, given: RunOptions = {}, jobGiven: Partial<FinalJob> = {}) {
    const id = jobGiven.id ?? `{s}@${new Date(fireAt).toISOString()}`;
    return {
      lines: run(id, 1, fireAt + 20, { done: true, schedule: "s", fireAt, ...given }),
      jobs: [ended(id, "at-least-once", { schedule: "s", fireAt, ...jobGiven })],
      ledger: [{ schedule: "s", fireAt, until: null, fate: "planned", reason: null, job: id } as const],
    };
  }

  const both = [occurrence(2_000), occurrence(3_000)];

  test("all that must, and some that may", () => {
    assert.deepEqual(broken({ operations }, ...both), []);
    assert.deepEqual(broken({ operations }, ...both, occurrence(1_000), occurrence(5_000)), []);
  });

  test("missed: no job and no row", () => {
    assert.deepEqual(broken({ operations }, occurrence(2_000)), ["missed"]);
  });

  test("missed: skipped, whatever the reason", () => {
    const ledger = [
      { schedule: "s", fireAt: 3_000, until: null, fate: "skipped", reason: "why not", job: null } as const,
    ];
    assert.deepEqual(broken({ operations }, occurrence(2_000), { ledger }), ["missed"]);
  });

  test("duplicated: two jobs for one occurrence", () => {
    const twin = occurrence(3_000, {}, { id: "twin" });
    assert.deepEqual(broken({ operations }, ...both, { lines: twin.lines }), ["duplicated", "phantom"]);
  });

  test("phantom: a label that is no target", () => {
    assert.ok(broken({ operations }, ...both, occurrence(2_500)).includes("phantom"));
  });

  test("blind: labels that lie are not believed", () => {
    const lines = run("{s}@1970-01-01T00:00:03.000Z", 1, 2_025, { done: true, schedule: "s", fireAt: 3_000 });
    const verdict = check(history({ operations }, occurrence(2_000), { ...occurrence(3_000), lines }));
    assert.deepEqual(kinds(verdict), ["early", "missed"]);
  });
});

describe("matching runs with windows", () => {
  const windows = (...froms: number[]) =>
    froms.map((fromMs) => ({ fromMs, untilMs: fromMs + 50, optional: false }));

  test("valid with one extra run, invalid with one missing", () => {
    assert.deepEqual(matchRuns(windows(0, 100), [10, 20, 110]), { missed: [], extra: [20] });
    assert.equal(matchRuns(windows(0, 100, 200), [10, 110]).missed.length, 1);
  });

  test("a late run and a premature one satisfy nothing", () => {
    assert.deepEqual(matchRuns(windows(100), [90, 160]), { missed: windows(100), extra: [90, 160] });
  });

  test("overlapping windows: the one whose time is up first is served first", () => {
    const targets = [
      { fromMs: 0, untilMs: 100, optional: false },
      { fromMs: 10, untilMs: 20, optional: false },
    ];
    assert.deepEqual(matchRuns(targets, [15, 90]), { missed: [], extra: [] });
  });

  test("an optional target takes a run that would be extra, and needs none", () => {
    const targets = [...windows(0), { fromMs: 0, untilMs: 50, optional: true }];
    assert.deepEqual(matchRuns(targets, [10]), { missed: [], extra: [] });
    assert.deepEqual(matchRuns(targets, [10, 20]), { missed: [], extra: [] });
  });
});
