import assert from "node:assert";
import { type Delivery, deliveries, type JobState, jobStates } from "./job.ts";
import { type Backoff, backoffMs } from "./retry.ts";

/** Everything that can happen to a job. */
export type Transition =
  | "unblock"
  | "claim"
  | "succeed"
  | "retry"
  | "snooze"
  | "release"
  | "rollback"
  | "die"
  | "lose"
  | "cancel"
  | "expire"
  | "redrive";

/**
 * The one table of what may follow what. A pair that is not here does not happen: succeeded and cancelled
 * are final, and only a redrive leads out of dead and lost.
 */
export const transitions: Readonly<Record<JobState, Readonly<Partial<Record<Transition, JobState>>>>> = {
  blocked: { unblock: "waiting", cancel: "cancelled", expire: "cancelled" },
  waiting: { claim: "active", cancel: "cancelled", expire: "cancelled" },
  active: {
    succeed: "succeeded",
    retry: "waiting",
    snooze: "waiting",
    release: "waiting",
    rollback: "waiting",
    die: "dead",
    lose: "lost",
    cancel: "cancelled",
  },
  succeeded: {},
  dead: { redrive: "waiting" },
  lost: { redrive: "waiting" },
  cancelled: {},
};

/** Where a job stays until it is forgotten, or redriven. */
export const endedStates = ["succeeded", "cancelled", "dead", "lost"] as const satisfies JobState[];

export type EndedState = (typeof endedStates)[number];

export function isTerminal(state: JobState): state is EndedState {
  return state === "succeeded" || state === "dead" || state === "lost" || state === "cancelled";
}

/** The state that follows; asking for a step that the table does not have is a programmer's error. */
export function follow(state: JobState, transition: Transition): JobState {
  const next = transitions[state][transition];
  assert(next !== undefined, `a job that is ${state} cannot ${transition}`);
  return next;
}

function statesBefore(transition: Transition): readonly JobState[] {
  return jobStates.filter((state) => transitions[state][transition] !== undefined);
}

/** A job that nobody holds and that has not ended: it may be changed, and is cancelled at once. */
export const idleStates = statesBefore("expire");
/** A job that has not ended: it may be cancelled, and others may wait for it. */
export const openStates = statesBefore("cancel");
/** A job that may be sent back to waiting. */
export const redrivableStates = statesBefore("redrive");

export function isIdle(state: JobState): boolean {
  return idleStates.includes(state);
}

export function isRedrivable(state: JobState): state is "dead" | "lost" {
  return redrivableStates.includes(state);
}

/** How a claim ended, as its holder tells it (or the reaper, for a holder that fell silent). */
export type Outcome =
  /** `notKept`: why its result is left out; it becomes the job's reason. */
  | { readonly kind: "succeed"; readonly result: string | null; readonly notKept?: string }
  /** The handler failed and may be tried again. */
  | { readonly kind: "retry"; readonly delayMs: number; readonly error: string }
  /** The handler asked to be called later; it counts as no try. */
  | { readonly kind: "snooze"; readonly delayMs: number }
  /** It was never started; it counts as no try. With a delay where this holder cannot start it, and the error that tells why. */
  | { readonly kind: "release"; readonly delayMs?: number; readonly error?: string }
  /** Its dispatch was undone through no fault of its own: a broker refused it, or the store failed under its `tx`. Counted apart, as no try. */
  | { readonly kind: "rollback"; readonly delayMs: number; readonly error: string }
  | { readonly kind: "die"; readonly reason: string; readonly error: string }
  /** It is unknown whether it was dispatched. Only for at-most-once. */
  | { readonly kind: "lose"; readonly reason: string }
  /** Its holder is gone without a word, or its thread is. */
  | { readonly kind: "crash"; readonly reason: string };

export type Success = Extract<Outcome, { readonly kind: "succeed" }>;

/**
 * Outcomes as the languages of stores know them; those that number them count from 1, in this order. A success whose result is left out is a
 * kind of its own: it has a reason.
 */
export const outcomeKinds = [
  "succeed",
  "retry",
  "snooze",
  "release",
  "rollback",
  "die",
  "lose",
  "crash",
  "succeed-without",
] as const;

export type OutcomeKind = (typeof outcomeKinds)[number];

export function outcomeKindOf(outcome: Outcome): OutcomeKind {
  return outcome.kind === "succeed" && outcome.notKept !== undefined ? "succeed-without" : outcome.kind;
}

/** How the reason begins of a job that succeeded and whose result could not be kept. */
export const resultNotKept = "result not kept: ";

/** How a claim ends whose lease ran out. One that was taken ahead may not have been started, which is no crash of the job's. */
export function silence(job: { readonly ahead: boolean }): Outcome {
  return job.ahead ? { kind: "release" } : { kind: "crash", reason: "its lease ran out" };
}

/** What the decision about a held job rests on. */
export interface HeldJob {
  readonly delivery: Delivery;
  readonly attempt: number;
  readonly crashes: number;
  readonly maxCrashes: number;
  readonly cancelRequested: boolean;
  /** Why its cancellation was requested, if that was said; a claim starts without a reason. */
  readonly reason: string | null;
}

/** What a store writes when a claim ends. */
export interface Settlement {
  readonly state: JobState;
  readonly reason: string | null;
  readonly attempt: number;
  readonly crashes: number;
  /** How much to add to the count of rollbacks. */
  readonly rollbacks: 0 | 1;
  /** The new `runAt`, from the store's now; null leaves it as it is. */
  readonly delayMs: number | null;
  /** The error to keep; null leaves the earlier one. */
  readonly error: string | null;
  readonly result: string | null;
}

/**
 * Decides what becomes of a held job. A cancel that was requested wins over every end but success: the work
 * is done, and saying otherwise would be a lie.
 */
export function settle(job: HeldJob, outcome: Outcome): Settlement {
  const plain = settleUncancelled(job, outcome);
  if (!job.cancelRequested || plain.state === "succeeded") return plain;
  return {
    ...plain,
    state: follow("active", "cancel"),
    reason: job.reason ?? "cancelled while active",
    delayMs: null,
  };
}

function settleUncancelled(job: HeldJob, outcome: Outcome): Settlement {
  const base = {
    reason: null,
    attempt: job.attempt,
    crashes: job.crashes,
    rollbacks: 0,
    delayMs: null,
    error: null,
    result: null,
  } as const;
  switch (outcome.kind) {
    case "succeed":
      return {
        ...base,
        state: follow("active", "succeed"),
        reason: outcome.notKept ?? null,
        result: outcome.result,
      };
    case "retry":
      assertMayRepeat(job, "retry");
      return { ...base, state: follow("active", "retry"), delayMs: outcome.delayMs, error: outcome.error };
    case "snooze":
      assertMayRepeat(job, "snooze");
      return {
        ...base,
        state: follow("active", "snooze"),
        attempt: job.attempt - 1,
        delayMs: outcome.delayMs,
      };
    case "release":
      return {
        ...base,
        state: follow("active", "release"),
        attempt: job.attempt - 1,
        delayMs: outcome.delayMs ?? null,
        error: outcome.error ?? null,
      };
    case "rollback":
      assertMayRepeat(job, "rollback");
      return {
        ...base,
        state: follow("active", "rollback"),
        attempt: job.attempt - 1,
        rollbacks: 1,
        delayMs: outcome.delayMs,
        error: outcome.error,
      };
    case "die":
      return { ...base, state: follow("active", "die"), reason: outcome.reason, error: outcome.error };
    case "lose":
      return { ...base, state: follow("active", "lose"), reason: outcome.reason };
    case "crash":
      return { ...base, ...settleCrash(job, outcome.reason) };
  }
}

/**
 * No count of a job, no version and no epoch is higher: tables refuse more. One that stands there was set by something else.
 */
export const maxCount = 1_000_000_000;

/** A crash says nothing about the effect: at-most-once must not try again, the others must. */
function settleCrash(job: HeldJob, reason: string): Pick<Settlement, "state" | "reason" | "crashes"> {
  const crashes = Math.min(job.crashes, maxCount - 1) + 1;
  if (job.delivery === "at-most-once") return { state: follow("active", "lose"), reason, crashes };
  if (crashes >= job.maxCrashes) {
    return { state: follow("active", "die"), reason: `poison: ${reason} (crash ${crashes})`, crashes };
  }
  return { state: follow("active", "release"), reason, crashes };
}

function assertMayRepeat(job: HeldJob, transition: Transition): void {
  assert(job.delivery !== "at-most-once", `an at-most-once job cannot ${transition} once it was dispatched`);
}

/** What a job's trail says of the end of a claim; nothing where the job itself tells it. */
export function story(outcome: Outcome): {
  readonly kind: "failed" | "crashed" | "snoozed" | "rolled-back" | "result-not-kept";
  readonly text: string | null;
  readonly error: string | null;
} | null {
  switch (outcome.kind) {
    case "retry":
      return { kind: "failed", text: null, error: outcome.error };
    case "die":
      return { kind: "failed", text: outcome.reason, error: outcome.error };
    case "crash":
      return { kind: "crashed", text: outcome.reason, error: null };
    case "snooze":
      return { kind: "snoozed", text: null, error: null };
    case "rollback":
      return { kind: "rolled-back", text: null, error: outcome.error };
    case "succeed":
      if (outcome.notKept === undefined) return null;
      return { kind: "result-not-kept", text: outcome.notKept, error: null };
    case "release":
    case "lose":
      return null;
  }
}

/** Whether the end of a parent cancels a child that waits for it. */
export function isOrphan(child: { readonly afterFailure: AfterFailure }, parentState: JobState): boolean {
  return child.afterFailure === "cancel" && parentState !== "succeeded" && isTerminal(parentState);
}

/** What becomes of a child whose parent ends without success. */
export type AfterFailure = "cancel" | "run";

/** Why a job is cancelled whose parent did not succeed. */
export function orphanReason(parent: { readonly id: string; readonly state: JobState }): string {
  return `its parent ${parent.id} is ${parent.state}`;
}

/** Why a job is cancelled that was not started in time. */
export const expiredReason = "expired";

/** A success of which no more is to be said than its result: what almost every job ends with, and what stores write quickly. */
export function isPlainSuccess(outcome: Outcome): outcome is Success & { readonly notKept?: never } {
  return outcome.kind === "succeed" && outcome.notKept === undefined;
}

/** A job one crash short of poison: it runs alone in its process, so its neighbours are not condemned with it. */
export function isFragile(job: { readonly crashes: number; readonly maxCrashes: number }): boolean {
  return job.crashes > 0 && job.crashes >= job.maxCrashes - 1;
}

/**
 * Whether a job may be claimed before its holder has room for it. A process that dies must not cost an at-most-once job its only start, a key
 * must not be held by a job that waits, and a job whose holder fell silent before counts its next one.
 */
export function mayClaimAhead(job: {
  readonly delivery: Delivery;
  readonly concurrencyKey: string | null;
  readonly rateKey: string | null;
  readonly crashes: number;
  readonly ahead: boolean;
}): boolean {
  const isKeyed = job.concurrencyKey !== null || job.rateKey !== null;
  return job.delivery !== "at-most-once" && !isKeyed && job.crashes === 0 && !job.ahead;
}

/** Deliveries whose jobs are never claimed ahead, however plain they are. */
export const neverAhead: readonly Delivery[] = deliveries.filter(
  (delivery) => !mayClaimAhead({ delivery, concurrencyKey: null, rateKey: null, crashes: 0, ahead: false }),
);

/** What the decision after a failure rests on. */
export interface FailedJob {
  readonly delivery: Delivery;
  readonly attempt: number;
  readonly attempts: number;
  readonly crashes: number;
}

/** Decides between another try and the end, after a handler threw or timed out. */
export function afterFailure(
  job: FailedJob,
  failure: { readonly error: string; readonly unrecoverable: boolean },
  backoff: Backoff,
  random: number,
): Outcome {
  const failures = job.attempt - job.crashes;
  const die = (reason: string): Outcome => ({ kind: "die", reason, error: failure.error });
  if (job.delivery === "at-most-once") return die("failed, and at-most-once is never retried");
  if (failure.unrecoverable) return die("unrecoverable");
  if (failures >= job.attempts) return die(`attempts used up (${job.attempts})`);
  return { kind: "retry", delayMs: backoffMs(backoff, failures, random), error: failure.error };
}

/** The store is back soon, or somebody sees to it; until then each of its jobs asks now and then. */
const storeBackoff: Backoff = { type: "exponential", delayMs: 1_000, maxMs: 10_000, jitter: 0.2 };

/**
 * Decides after the store failed under a handler's `tx`: the job goes back without using up a try. At-most-once was dispatched, and is never
 * dispatched again.
 */
export function afterStoreFailure(
  job: FailedJob & { readonly token: number },
  error: string,
  random: number,
): Outcome {
  if (job.delivery === "at-most-once")
    return {
      kind: "die",
      reason: "the store failed under its tx, and at-most-once is never retried",
      error,
    };
  // Claims that used up no try: those that the store spoilt among them.
  const spared = Math.max(0, job.token - job.attempt);
  return { kind: "rollback", delayMs: backoffMs(storeBackoff, spared + 1, random), error };
}
