import { AssertionError } from "node:assert";
import { deliveries } from "../job.ts";
import { type HeldJob, type Outcome, type Settlement, settle, story } from "../state.ts";

/** One end of a claim, and what the core makes of it; null if it refuses. */
export interface PolicyCase {
  readonly job: HeldJob;
  readonly outcome: Outcome;
  readonly settlement: Settlement | null;
  readonly story: ReturnType<typeof story>;
}

/** One of each kind, also without what it may leave out. */
export const everyOutcome: readonly Outcome[] = [
  { kind: "succeed", result: null },
  { kind: "succeed", result: '"done"' },
  { kind: "succeed", result: null, notKept: "result not kept: too long" },
  { kind: "retry", delayMs: 1_000, error: '{"message":"again"}' },
  { kind: "snooze", delayMs: 0 },
  { kind: "release" },
  { kind: "release", delayMs: 2_000, error: '{"message":"not here"}' },
  { kind: "rollback", delayMs: 3_000, error: '{"message":"refused"}' },
  { kind: "die", reason: "no use", error: '{"message":"broken"}' },
  { kind: "lose", reason: "nobody knows" },
  { kind: "crash", reason: "its process is gone" },
];

/** Every outcome of every kind of held job: delivery, crashes before and at the most, and whether and why it was asked to stop. */
export function everyCase(): PolicyCase[] {
  return jobs().flatMap((job) =>
    everyOutcome.map((outcome) => ({
      job,
      outcome,
      settlement: settleOrRefuse(job, outcome),
      story: story(outcome),
    })),
  );
}

function jobs(): HeldJob[] {
  const counts = [0, 1, 2, 3, 4];
  return deliveries.flatMap((delivery) =>
    counts.flatMap((crashes) =>
      counts.flatMap((more) =>
        stops.map((stop) => ({ delivery, attempt: crashes + 1, crashes, maxCrashes: more + 1, ...stop })),
      ),
    ),
  );
}

/** Whether a job was asked to stop, and why. */
export const stops = [
  { cancelRequested: false, reason: null },
  { cancelRequested: true, reason: null },
  { cancelRequested: true, reason: "it's enough" },
] as const;

export function settleOrRefuse(job: HeldJob, outcome: Outcome): Settlement | null {
  try {
    return settle(job, outcome);
  } catch (error) {
    if (error instanceof AssertionError) return null;
    throw error;
  }
}

/** A decision in the form in which a store's own language gives it: state, reason, changes of counts, what is kept, and the line of the trail. */
export type Decision = readonly [
  state: string,
  reason: string | null,
  attemptChange: number,
  crashChange: number,
  rollbacks: number,
  isDelayed: boolean,
  keepsError: boolean,
  keepsResult: boolean,
  story: string | null,
  tellsReason: boolean,
  tellsError: boolean,
];

/** What such a decision comes to, to be compared with what the core says. */
export function apply(
  { job, outcome }: PolicyCase,
  decision: Decision,
): Pick<PolicyCase, "settlement" | "story"> {
  const [
    state,
    reason,
    attemptChange,
    crashChange,
    rollbacks,
    isDelayed,
    keepsError,
    keepsResult,
    kind,
    tellsReason,
    tellsError,
  ] = decision;
  const delayMs = "delayMs" in outcome ? (outcome.delayMs ?? null) : null;
  const error = "error" in outcome ? (outcome.error ?? null) : null;
  const result = "result" in outcome ? outcome.result : null;
  const settlement = {
    state,
    reason,
    attempt: job.attempt + attemptChange,
    crashes: job.crashes + crashChange,
    rollbacks,
    delayMs: isDelayed ? delayMs : null,
    error: keepsError ? error : null,
    result: keepsResult ? result : null,
  } as Settlement;
  const line = { kind, text: tellsReason ? reasonOf(outcome) : null, error: tellsError ? error : null };
  return { settlement, story: kind === null ? null : (line as PolicyCase["story"]) };
}

export function reasonOf(outcome: Outcome): string | null {
  if (outcome.kind === "succeed") return outcome.notKept ?? null;
  return "reason" in outcome ? outcome.reason : null;
}
