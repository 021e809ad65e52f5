import { type Delivery, deliveries } from "../job.ts";
import { type Attempt, attemptsOf, faultOn } from "./attempts.ts";
import { checkJob, type JobCase, type JobFindings } from "./check-job.ts";
import { checkSchedules } from "./check-schedules.ts";
import { type ExpectedJob, expectedJobs } from "./expected-jobs.ts";
import type { FinalJob, History } from "./history.ts";
import { checkRecovery, type Recovery } from "./recovery.ts";
import { checkDrill } from "./relay/check-drill.ts";
import { checkPartitions } from "./relay/check-partitions.ts";
import { checkRoutedJob } from "./relay/check-routed-job.ts";
import type { RelayEvidence } from "./relay/evidence.ts";
import { type RelayFigures, relayFigures } from "./relay/figures.ts";
import { namedFromLine, publishesOf, takenUp } from "./relay/publishes.ts";
import { checkStrangers, routedCases } from "./relay/routed-cases.ts";
import { doubts, drillWindows, faultsOfHolders, faultsOfPublishes, faultsOfRelays } from "./relay/trouble.ts";
import { type Violation, type ViolationKind, violationKinds } from "./violation.ts";

/** The figures of one guarantee. */
export interface Figures {
  readonly delivery: Delivery;
  /** Acknowledged, or due by a schedule. */
  readonly jobs: number;
  readonly dispatches: number;
  /** Second dispatches that a fault explains. */
  readonly reruns: number;
  readonly succeeded: number;
  /** Given up with a reason, as at-most-once must. */
  readonly givenUp: number;
  readonly cancelled: number;
  readonly dead: number;
  readonly effects: number;
  /** Jobs that took effect more than once. */
  readonly effectsDoubled: number;
  /** Outcomes of holders that had lost their claim, which the store refused as it must. */
  readonly staleRefused: number;
  readonly recovery: Spread;
  readonly broken: Readonly<Record<ViolationKind, number>>;
}

/** How long interrupted jobs waited until they ran again. */
export interface Spread {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

export interface Verdict {
  readonly valid: boolean;
  readonly violations: readonly Violation[];
  readonly figures: readonly Figures[];
  readonly reruns: { readonly count: number; readonly bound: number };
  readonly staleRefused: number;
  readonly recovery: Spread & { readonly boundMs: number };
  /** Null: nothing was published. */
  readonly relay: RelayFigures | null;
}

/** What the checks of jobs have found out, of whatever kind the jobs are. */
interface Judged {
  readonly cases: readonly JobCase[];
  readonly findings: readonly JobFindings[];
  /** The dispatches of each job, as far as they are promised anything. */
  readonly attempts: ReadonlyMap<string, readonly Attempt[]>;
  readonly recovery: Recovery;
  readonly violations: readonly Violation[];
  readonly bound: number;
  readonly relay: RelayFigures | null;
}

/** Judges a run by its history, and by nothing else. */
export function check(history: History): Verdict {
  const expected = expectedJobs(history);
  const finals = new Map(history.jobs.map((job) => [job.id, job]));
  const judged =
    history.relay === null
      ? judgeRuns(history, expected, finals)
      : judgeRelay(history, history.relay, expected, finals);
  const { cases, findings, attempts, recovery, bound } = judged;
  const reruns = findings.reduce((sum, { excusedReruns }) => sum + excusedReruns, 0);
  const violations = [
    ...findings.flatMap((one) => one.violations),
    ...checkPhantoms(history, expected, attempts),
    ...judged.violations,
    ...recovery.violations,
    ...(reruns > bound
      ? [tooManyReruns(reruns, bound, judged.relay === null ? "concurrency" : "in flight")]
      : []),
  ];
  return {
    valid: violations.length === 0,
    violations,
    figures: deliveries.map((delivery) =>
      figuresOf(
        delivery,
        cases.filter(({ job }) => job.delivery === delivery),
        findings.filter((_, index) => cases[index]?.job.delivery === delivery),
        violations,
        recovery.samples.filter(({ job }) => expected.get(job)?.delivery === delivery),
      ),
    ),
    reruns: { count: reruns, bound },
    staleRefused: history.lines.filter(({ what }) => what === "stale").length,
    recovery: { ...spreadOf(recovery.samples), boundMs: recovery.boundMs },
    relay: judged.relay,
  };
}

/** Jobs whose handlers ran in the nodes. */
function judgeRuns(
  history: History,
  expected: ReadonlyMap<string, ExpectedJob>,
  finals: ReadonlyMap<string, FinalJob>,
): Judged {
  const attempts = attemptsOf(history);
  const effects = Map.groupBy(history.effects, ({ job }) => job);
  const cases = [...expected.values()].map(
    (job): JobCase => ({
      history,
      job,
      attempts: attempts.get(job.id) ?? [],
      effects: effects.get(job.id) ?? [],
      final: finals.get(job.id) ?? null,
    }),
  );
  return {
    cases,
    findings: cases.map((one) => checkJob(one)),
    attempts,
    recovery: checkRecovery(history, attempts),
    violations: checkSchedules({ history, expected, attempts, finals }),
    bound: struckProcesses(history) * history.rules.concurrency,
    relay: null,
  };
}

/** What a broker feels. */
const brokerFaults: ReadonlySet<string> = new Set(["broker", "both", "broker-restart"]);

/** Jobs that were published: their dispatches are messages, and what became of them is what the broker has. */
function judgeRelay(
  history: History,
  evidence: RelayEvidence,
  expected: ReadonlyMap<string, ExpectedJob>,
  finals: ReadonlyMap<string, FinalJob>,
): Judged {
  const publishes = publishesOf(evidence);
  const faults = faultsOfRelays(history);
  const drills = drillWindows(evidence);
  const cases = routedCases({ history, evidence, expected, finals, publishes });
  // A relay that takes over publishes at once, whatever the broker does; what is due next waits until a broker in trouble is asked again.
  const takingOver = { ...history, faults: [...faultsOfHolders(history), ...drills] };
  const planning = { ...history, faults: [...faultsOfPublishes(history), ...drills] };
  const isFromLine = namedFromLine(evidence);
  const outages = history.faults.filter(({ kind }) => brokerFaults.has(kind));
  return {
    cases,
    findings: cases.map((one) => checkRoutedJob(one)),
    attempts: publishes,
    recovery: checkRecovery(
      takingOver,
      takenUp(evidence, publishes),
      // One that stands in line waits for the broker like all others.
      (next, fromMs) => isFromLine(next) && faultOn(outages, null, fromMs, next.startAtMs) !== undefined,
    ),
    violations: [
      ...checkSchedules({ history: planning, expected, attempts: publishes, finals }),
      ...checkPartitions(evidence, publishes, faults),
      ...checkDrill(history, evidence, publishes, faults),
      ...checkStrangers(evidence, expected),
    ],
    bound:
      struckProcesses({ ...history, faults }) * evidence.rules.inFlight + doubts(history, publishes.values()),
    relay: relayFigures(evidence),
  };
}

/** A fault can cost each process that it strikes what that process had in hand, and no more. */
function struckProcesses({ faults, rules }: History): number {
  return faults
    .filter(({ kind }) => kind !== "clock")
    .reduce((sum, { node }) => sum + (node === null ? rules.nodes : 1), 0);
}

function tooManyReruns(reruns: number, bound: number, each: string): Violation {
  const detail = `${reruns} jobs were dispatched again, and faults × ${each} allow ${bound}`;
  return { kind: "duplicated", delivery: null, subject: "all jobs", detail, atMs: null };
}

/** Whatever ran, stands in the store or took effect was asked for by somebody. */
function checkPhantoms(
  history: History,
  expected: ReadonlyMap<string, ExpectedJob>,
  attempts: ReadonlyMap<string, readonly Attempt[]>,
): Violation[] {
  const unknown = new Map<string, Violation>();
  const note = (subject: string, detail: string, atMs: number | null): void => {
    if (expected.has(subject) || unknown.has(subject)) return;
    unknown.set(subject, { kind: "phantom", delivery: null, subject, detail, atMs });
  };
  for (const [id, [first]] of attempts) note(id, "it ran, but was never enqueued", first?.startAtMs ?? null);
  for (const { id } of history.jobs) note(id, "the store has it, but it was never enqueued", null);
  for (const { job } of history.effects) note(job, "it took effect, but was never enqueued", null);
  return [...unknown.values()];
}

function figuresOf(
  delivery: Delivery,
  cases: readonly JobCase[],
  findings: readonly { readonly excusedReruns: number }[],
  violations: readonly Violation[],
  recovered: Recovery["samples"],
): Figures {
  const ended = (state: string): number => cases.filter(({ final }) => final?.state === state).length;
  const own = violations.filter((violation) => violation.delivery === delivery);
  const ids = new Set(cases.map(({ job }) => job.id));
  const lines = cases[0]?.history.lines ?? [];
  const counts = violationKinds.map((kind) => [kind, own.filter((one) => one.kind === kind).length]);
  return {
    delivery,
    jobs: cases.filter(({ job, final }) => job.certain || final !== null).length,
    dispatches: cases.reduce((sum, one) => sum + (one.copies ?? one.attempts).length, 0),
    reruns: findings.reduce((sum, { excusedReruns }) => sum + excusedReruns, 0),
    succeeded: ended("succeeded"),
    givenUp: ended("lost"),
    cancelled: ended("cancelled"),
    dead: ended("dead"),
    effects: cases.reduce((sum, one) => sum + one.effects.length, 0),
    effectsDoubled: cases.filter((one) => one.effects.length > 1).length,
    staleRefused: lines.filter(({ what, job }) => what === "stale" && ids.has(job)).length,
    recovery: spreadOf(recovered),
    broken: Object.fromEntries(counts) as Record<ViolationKind, number>,
  };
}

function spreadOf(samples: Recovery["samples"]): Spread {
  const sorted = samples.map(({ waitedMs }) => waitedMs).toSorted((a, b) => a - b);
  return {
    count: sorted.length,
    p50Ms: quantile(sorted, 0.5),
    p99Ms: quantile(sorted, 0.99),
    maxMs: quantile(sorted, 1),
  };
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
}
