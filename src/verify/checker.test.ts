import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Delivery } from "../job.ts";
import { check, type Verdict } from "./checker.ts";
import type { EnqueueCall, FaultWindow, FinalJob, History, LogLine, Operation } from "./history.ts";
import { matchRuns } from "./matching.ts";

const rules: History["rules"] = {
  leaseMs: 1_000,
  pollMs: 100,
  nodes: 2,
  concurrency: 2,
  retryMs: 100,
  precisionMs: 5,
  wallOffsetMs: 0,
  effectsWith: "job",
};

const nothing: History = {
  rules,
  operations: [],
  lines: [],
  faults: [],
  jobs: [],
  effects: [],
  ledger: [],
  endedAtMs: 100_000,
};

function history(...parts: readonly Partial<History>[]): History {
  const all = <K extends keyof History>(key: K): History[K] =>
    parts.flatMap((part) => (part[key] ?? []) as never) as never;
  return {
    ...nothing,
    operations: all("operations"),
    lines: all("lines"),
    faults: all("faults"),
    jobs: all("jobs"),
    effects: all("effects"),
    ledger: all("ledger"),
  };
}

const call = { invokedAtMs: 10, endedAtMs: 20, outcome: "ok" } as const;

function enqueued(job: string, delivery: Delivery, given: Partial<EnqueueCall> = {}): Operation {
  return { kind: "enqueue", ...call, job, delivery, delayMs: 0, failures: 0, ...given };
}

type RunOptions = Partial<LogLine> & { readonly endAtMs?: number | null; readonly done?: boolean };

/** A run that starts at a time and ends 10 ms later, unless it is said otherwise. */
function run(job: string, token: number, atMs: number, options: RunOptions = {}): LogLine[] {
  const { endAtMs = atMs + 10, done = false, how = "returned", ...given } = options;
  const line = {
    node: "a",
    job,
    token,
    claimedAtMs: null,
    how: null,
    schedule: null,
    fireAt: null,
    ...given,
  };
  const lines: LogLine[] = [{ ...line, what: "start", atMs }];
  if (endAtMs !== null) lines.push({ ...line, what: "end", atMs: endAtMs, how });
  if (done) lines.push({ ...line, what: "done", atMs: (endAtMs ?? atMs) + 1 });
  return lines;
}

function ended(id: string, delivery: Delivery, given: Partial<FinalJob> = {}): FinalJob {
  return {
    id,
    delivery,
    state: "succeeded",
    reason: null,
    token: 1,
    resultToken: 1,
    schedule: null,
    fireAt: 0,
    ...given,
  };
}

function fault(
  kind: FaultWindow["kind"],
  node: string | null,
  fromMs: number,
  untilMs = fromMs,
): FaultWindow {
  return { kind, node, fromMs, untilMs, detail: "" };
}

/** One job, enqueued, run and ended without a hitch. */
function clean(job: string, delivery: Delivery): Partial<History> {
  return {
    operations: [enqueued(job, delivery)],
    lines: run(job, 1, 30, { done: true }),
    jobs: [ended(job, delivery)],
    effects: delivery === "effectively-once" ? [{ job, token: 1 }] : [],
  };
}

function kinds(verdict: Verdict): string[] {
  return [...new Set(verdict.violations.map(({ kind }) => kind))].sort();
}

function broken(...parts: readonly Partial<History>[]): string[] {
  return kinds(check(history(...parts)));
}

/** A kill in the middle, and a second run elsewhere. */
function killed(delivery: Delivery): Partial<History> {
  return {
    operations: [enqueued("j", delivery)],
    lines: [...run("j", 1, 30, { endAtMs: null }), ...run("j", 2, 1_200, { node: "b", done: true })],
    faults: [fault("kill", "a", 35)],
    jobs: [ended("j", delivery, { token: 2, resultToken: 2 })],
    effects: delivery === "effectively-once" ? [{ job: "j", token: 2 }] : [],
  };
}

describe("a history that keeps every promise is valid", () => {
  test("one run per job", () => {
    const verdict = check(
      history(clean("a", "at-most-once"), clean("b", "at-least-once"), clean("c", "effectively-once")),
    );
    assert.deepEqual(verdict.violations, []);
    assert.deepEqual(
      verdict.figures.map(({ jobs, dispatches, effects }) => [jobs, dispatches, effects]),
      [
        [1, 1, 0],
        [1, 1, 0],
        [1, 1, 1],
      ],
    );
  });

  test("a kill explains a second run, and the recovery is measured", () => {
    const verdict = check(history(killed("at-least-once")));
    assert.deepEqual(verdict.violations, []);
    assert.deepEqual(verdict.reruns, { count: 1, bound: 2 });
    assert.equal(verdict.recovery.maxMs, 1_165);
    const late = [...run("j", 1, 40, { claimedAtMs: 33 }), ...run("j", 2, 1_200, { node: "b", done: true })];
    assert.deepEqual(
      broken({ ...killed("at-least-once"), lines: late }),
      [],
      "it struck between claim and start",
    );
    const after = [...run("j", 1, 40, { claimedAtMs: 38 }), ...run("j", 2, 1_200, { node: "b", done: true })];
    assert.deepEqual(broken({ ...killed("at-least-once"), lines: after }), ["duplicated"]);
    assert.deepEqual(broken(killed("effectively-once")), []);
  });

  test("a failure that the script asks for explains a second run", () => {
    const operations = [enqueued("j", "at-least-once", { failures: 1 })];
    const lines = [...run("j", 1, 30, { how: "threw" }), ...run("j", 2, 150, { done: true })];
    const jobs = [ended("j", "at-least-once", { token: 2, resultToken: 2 })];
    assert.deepEqual(broken({ operations, lines, jobs }), []);
  });

  test("an at-most-once job that its node took down with it is given up", () => {
    const operations = [enqueued("j", "at-most-once")];
    const jobs = [ended("j", "at-most-once", { state: "lost", resultToken: null })];
    const lines = run("j", 1, 30, { endAtMs: null });
    assert.deepEqual(broken({ operations, jobs, lines, faults: [fault("kill", "a", 35)] }), []);
  });

  test("a call whose answer was lost may have happened, or not", () => {
    const operations = [enqueued("j", "at-least-once", { outcome: "info" })];
    assert.deepEqual(broken({ operations }), []);
    assert.deepEqual(broken({ ...clean("j", "at-least-once"), operations }), []);
  });

  test("a process that was held up between claim and first line may write it late", () => {
    const lines = [...run("j", 2, 1_500, { node: "b", done: true }), ...run("j", 1, 3_000)];
    const operations = [enqueued("j", "at-least-once")];
    const jobs = [ended("j", "at-least-once", { token: 2, resultToken: 2 })];
    assert.deepEqual(broken({ operations, lines, jobs, faults: [fault("pause", "a", 30, 2_990)] }), []);
  });
});

describe("each broken promise is called by its name", () => {
  test("lost: acknowledged and unknown", () => {
    assert.deepEqual(broken({ operations: [enqueued("j", "at-least-once")] }), ["lost"]);
  });

  test("lost: succeeded without a run that came to its end", () => {
    const lines = run("j", 1, 30, { endAtMs: null });
    assert.deepEqual(broken({ ...clean("j", "at-least-once"), lines }), ["lost"]);
  });

  test("lost: dead though nothing failed by script, or lost though nothing happened", () => {
    const dead = [ended("j", "at-least-once", { state: "dead", resultToken: null })];
    assert.deepEqual(broken({ ...clean("j", "at-least-once"), lines: run("j", 1, 30), jobs: dead }), [
      "lost",
    ]);
    const lost = [ended("j", "at-most-once", { state: "lost", resultToken: null })];
    assert.deepEqual(broken({ ...clean("j", "at-most-once"), lines: run("j", 1, 30), jobs: lost }), ["lost"]);
  });

  test("duplicated: a second run without a fault, or with one that struck another node, or in vain", () => {
    assert.deepEqual(broken({ ...killed("at-least-once"), faults: [] }), ["duplicated"]);
    assert.deepEqual(broken({ ...killed("at-least-once"), faults: [fault("kill", "b", 35)] }), [
      "duplicated",
    ]);
    assert.deepEqual(broken({ ...killed("at-least-once"), faults: [fault("clock", "a", 35)] }), [
      "duplicated",
    ]);
  });

  test("duplicated: any second run of an at-most-once job, whatever happened", () => {
    assert.deepEqual(broken(killed("at-most-once")), ["duplicated"]);
  });

  test("duplicated: more than faults times concurrency", () => {
    const parts = ["j1", "j2", "j3"].map((job): Partial<History> => {
      const lines = [...run(job, 1, 30, { endAtMs: null }), ...run(job, 2, 1_200, { node: "b", done: true })];
      const jobs = [ended(job, "at-least-once", { token: 2, resultToken: 2 })];
      return { operations: [enqueued(job, "at-least-once")], lines, jobs };
    });
    const verdict = check(history(...parts, { faults: [fault("kill", "a", 35)] }));
    assert.deepEqual(
      verdict.violations.map(({ detail }) => detail),
      ["3 jobs were dispatched again, and faults × concurrency allow 2"],
    );
  });

  test("duplicated: two committed effects", () => {
    const effects = [1, 2].map((token) => ({ job: "j", token }));
    assert.deepEqual(broken({ ...killed("effectively-once"), effects }), ["duplicated"]);
  });

  test("phantom: a run, a job or an effect that nobody asked for", () => {
    assert.deepEqual(broken({ lines: run("x", 1, 30) }), ["phantom"]);
    assert.deepEqual(broken({ jobs: [ended("x", "at-least-once")] }), ["phantom"]);
    assert.deepEqual(broken({ effects: [{ job: "x", token: 1 }] }), ["phantom"]);
  });

  test("early: before its delay, or before its backoff", () => {
    const operations = [enqueued("j", "at-least-once", { delayMs: 500 })];
    assert.deepEqual(broken({ ...clean("j", "at-least-once"), operations }), ["early"]);
    const failing = [enqueued("j", "at-least-once", { failures: 1 })];
    const lines = [...run("j", 1, 30, { how: "threw" }), ...run("j", 2, 60, { done: true })];
    const jobs = [ended("j", "at-least-once", { token: 2, resultToken: 2 })];
    assert.deepEqual(broken({ operations: failing, lines, jobs }), ["early"]);
  });

  test("duplicated: again after a success that was accepted, whatever happened since", () => {
    const lines = [...run("j", 1, 30, { done: true }), ...run("j", 2, 1_200, { node: "b" })];
    const parts = { ...killed("at-least-once"), lines, jobs: [ended("j", "at-least-once")] };
    assert.ok(broken(parts).includes("duplicated"));
  });

  test("stale-accepted: two successes, or a result of an earlier token", () => {
    const lines = [...run("j", 1, 30, { done: true }), ...run("j", 2, 1_200, { node: "b", done: true })];
    const twice = { ...killed("at-least-once"), lines, faults: [fault("pause", "a", 35, 1_300)] };
    assert.deepEqual(broken(twice), ["duplicated", "stale-accepted"]);
    const jobs = [ended("j", "at-least-once", { token: 2, resultToken: 1 })];
    const unacknowledged = [...run("j", 1, 30), ...run("j", 2, 1_200, { node: "b" })];
    assert.deepEqual(broken({ ...killed("at-least-once"), lines: unacknowledged, jobs }), ["stale-accepted"]);
  });

  test("stale-accepted: an effect of another token than the success", () => {
    const effects = [{ job: "j", token: 1 }];
    assert.deepEqual(broken({ ...killed("effectively-once"), effects }), ["stale-accepted"]);
    const withInbox = check({
      ...history({ ...killed("effectively-once"), effects }),
      rules: { ...rules, effectsWith: "inbox" },
    });
    assert.deepEqual(withInbox.violations, [], "an inbox keeps the first effect, whoever had it");
  });

  test("lost: succeeded without its effect", () => {
    assert.deepEqual(broken({ ...clean("j", "effectively-once"), effects: [] }), ["lost"]);
  });

  test("stuck: not ended", () => {
    const jobs = [ended("j", "at-least-once", { state: "active", resultToken: null })];
    assert.deepEqual(broken({ ...clean("j", "at-least-once"), lines: run("j", 1, 30), jobs }), ["stuck"]);
  });

  test("cancelled-ran: a confirmed cancel that did not hold", () => {
    const cancel: Operation = {
      kind: "cancel",
      job: "j",
      answer: "cancelled",
      invokedAtMs: 22,
      endedAtMs: 25,
      outcome: "ok",
    };
    const good = clean("j", "at-least-once");
    const operations = [...(good.operations ?? []), cancel];
    assert.deepEqual(broken({ ...good, operations }), ["cancelled-ran"]);
    const requested = [...(good.operations ?? []), { ...cancel, answer: "requested" } as const];
    assert.deepEqual(broken({ ...good, operations: requested }), [], "it was running, and came to its end");
    const faults = [fault("pause", "a", 23, 28)];
    assert.deepEqual(broken({ ...good, operations, faults }), ["cancelled-ran"]);
    const jobs = [ended("j", "at-least-once", { state: "cancelled", token: 1, resultToken: null })];
    const lines = run("j", 1, 30);
    assert.deepEqual(broken({ operations, faults, jobs, lines }), [], "held up since its old claim");
    const unclaimed = [ended("j", "at-least-once", { state: "cancelled", token: 0, resultToken: null })];
    assert.deepEqual(broken({ operations, faults, jobs: unclaimed, lines }), ["cancelled-ran"]);
  });

  test("lost: cancelled by nobody, unless the answer to a cancel was lost on its way", () => {
    const jobs = [ended("j", "at-least-once", { state: "cancelled", token: 0, resultToken: null })];
    const cancel = { kind: "cancel", job: "j", answer: "terminal", outcome: "ok" } as const;
    const times = { invokedAtMs: 22, endedAtMs: 500 };
    const operations = [enqueued("j", "at-least-once"), { ...cancel, ...times }];
    assert.deepEqual(broken({ operations, jobs }), ["lost"]);
    assert.deepEqual(broken({ operations, jobs, faults: [fault("network", null, 30, 400)] }), []);
    assert.deepEqual(broken({ operations, jobs, faults: [fault("kill", "a", 30)] }), ["lost"]);
  });

  test("token: one used twice", () => {
    const lines = [...run("j", 1, 30), ...run("j", 1, 31, { node: "b", done: true })];
    assert.deepEqual(broken({ ...clean("j", "at-most-once"), lines }), ["duplicated", "token"]);
  });

  test("slow: a recovery that took longer than lease, poll and a second", () => {
    const lines = [...run("j", 1, 30, { endAtMs: null }), ...run("j", 2, 3_000, { node: "b", done: true })];
    assert.deepEqual(broken({ ...killed("at-least-once"), lines }), ["slow"]);
    const again = [fault("kill", "a", 35), fault("kill", "c", 1_500)];
    assert.deepEqual(
      broken({ ...killed("at-least-once"), lines, faults: again }),
      [],
      "another came between",
    );
    const later = [fault("kill", "a", 35), fault("kill", "c", 4_000)];
    assert.deepEqual(broken({ ...killed("at-least-once"), lines, faults: later }), ["slow"]);
  });
});

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
