import type { Attempt } from "./attempts.ts";
import { type ExpectedJob, lateMs, type Span, spansOf } from "./expected-jobs.ts";
import type { FinalJob, History } from "./history.ts";
import { matchRuns } from "./matching.ts";
import { deadlineAfter } from "./patience.ts";
import type { Violation } from "./violation.ts";

/**
 * Behind a fault there is what was missed during it, planned first and oldest first, each with its own trips to the store, by machines
 * that at the same moment start their processes anew. Being late then breaks no promise. Without a fault nothing is forgiven.
 */
const catchUpMs = 5_000;

export interface ScheduleEvidence {
  readonly history: History;
  readonly expected: ReadonlyMap<string, ExpectedJob>;
  readonly attempts: ReadonlyMap<string, readonly Attempt[]>;
  readonly finals: ReadonlyMap<string, FinalJob>;
}

/** Judges schedules as wholes: by the labels that runs carry, by the ledger, and blind to both. */
export function checkSchedules(evidence: ScheduleEvidence): Violation[] {
  return spansOf(evidence.history).flatMap((span) => [
    ...checkLabels(span, evidence),
    ...checkLedger(span, evidence),
    ...checkBlind(span, evidence),
  ]);
}

function broken(
  { delivery, schedule }: Span,
  kind: Violation["kind"],
  fireAt: number | null,
  detail: string,
  atMs: number | null,
): Violation {
  const subject = fireAt === null ? schedule : `${schedule}@${new Date(fireAt).toISOString()}`;
  return { kind, delivery, subject, detail, atMs };
}

/** Two jobs under one label are two runs of one occurrence, whatever their ids say. */
function checkLabels(span: Span, { attempts }: ScheduleEvidence): Violation[] {
  const own = [...attempts.values()].flat().filter(({ schedule }) => schedule === span.schedule);
  return [...Map.groupBy(own, ({ fireAt }) => fireAt)].flatMap(([fireAt, runs]) => {
    const ids = new Set(runs.map(({ job }) => job));
    const atMs = runs.at(-1)?.startAtMs ?? null;
    return ids.size > 1
      ? [broken(span, "duplicated", fireAt, `${ids.size} jobs ran for one occurrence`, atMs)]
      : [];
  });
}

/** Each occurrence that was certainly due has its row, and none was skipped: nothing in a run gives a reason to. */
function checkLedger(span: Span, { history, expected }: ScheduleEvidence): Violation[] {
  const rows = history.ledger.filter(({ schedule }) => schedule === span.schedule);
  const covered = (fireAt: number): boolean =>
    rows.some((row) => row.fireAt === fireAt || (row.fireAt < fireAt && fireAt <= (row.until ?? row.fireAt)));
  const due = [...expected.values()].filter(
    ({ occurrence, certain }) => certain && occurrence?.schedule === span.schedule,
  );
  return [
    ...due.flatMap(({ occurrence, dueAtMs }) =>
      occurrence === null || covered(occurrence.fireAt)
        ? []
        : [broken(span, "missed", occurrence.fireAt, "it has no row in the ledger", dueAtMs)],
    ),
    ...rows.flatMap(({ fate, fireAt, reason }) =>
      fate === "skipped"
        ? [broken(span, "missed", fireAt, `it was skipped: ${reason ?? "without a reason"}`, null)]
        : [],
    ),
  ];
}

/** As many runs as times to run, at such times that each can have one: no label is believed. */
function checkBlind(span: Span, evidence: ScheduleEvidence): Violation[] {
  const { history, expected, attempts, finals } = evidence;
  const own = [...expected.values()].filter(({ occurrence }) => occurrence?.schedule === span.schedule);
  const targets = own.map(({ dueAtMs, certain, id }) => ({
    fromMs: dueAtMs - history.rules.precisionMs,
    untilMs: deadlineAfter(dueAtMs, lateMs(history.rules), history.faults, lateMs(history.rules) + catchUpMs),
    // What was given up with a reason is judged on its own.
    optional: !certain || finals.get(id)?.state === "lost",
  }));
  const runs = [...attempts.values()].flat().filter(({ schedule }) => schedule === span.schedule);
  const isRerun = (run: Attempt): boolean => attempts.get(run.job)?.[0] !== run;
  const starts = runs.filter((run) => !isRerun(run)).map(({ startAtMs }) => startAtMs);
  const { missed, extra } = matchRuns(targets, starts);
  return [
    ...missed.map(({ fromMs }) =>
      broken(span, "missed", null, "no run is left for this time, whatever the labels say", fromMs),
    ),
    ...extra.map((atMs) =>
      broken(span, "duplicated", null, "a run has no time to belong to, whatever its label says", atMs),
    ),
  ];
}
