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

/** The state that follows; a transition that is not in the table is a programmer error. */
export function follow(state: JobState, transition: Transition): JobState {
  const next = transitions[state][transition];
  assert(next !== undefined, `a job that is ${state} cannot ${transition}`);
  return next;
}

function statesBefore(transition: Transition): readonly JobState[] {
  return jobStates.filter((state) => transitions[state][transition] !== undefined);
}

/** A job that is not held and has not ended: it may be changed, and is cancelled at once. */
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

/** How a claim ended, as its holder reports it (or the reaper, for a holder that went silent). */
export type Outcome =
  /** `notKept`: why its result is left out; it becomes the job's reason. */
  | { readonly kind: "succeed"; readonly result: string | null; readonly notKept?: string }
  /** The handler failed and may be retried. */
  | { readonly kind: "retry"; readonly delayMs: number; readonly error: string }
  /** The handler asked to be called later; it does not use up an attempt. */
  | { readonly kind: "snooze"; readonly delayMs: number }
  /** It was never started; it does not use up an attempt. With a delay, and the error, if this holder cannot start it. */
  | { readonly kind: "release"; readonly delayMs?: number; readonly error?: string }
  /** Its dispatch was undone through no fault of its own: a broker refused it, or the store failed under its `tx`. Counted separately, not as an attempt. */
  | { readonly kind: "rollback"; readonly delayMs: number; readonly error: string }
  | { readonly kind: "die"; readonly reason: string; readonly error: string }
  /** It is unknown whether it was dispatched. Only for at-most-once. */
  | { readonly kind: "lose"; readonly reason: string }
  /** Its holder vanished, or its thread did. */
  | { readonly kind: "crash"; readonly reason: string };

export type Success = Extract<Outcome, { readonly kind: "succeed" }>;

/**
 * Outcomes as the languages of stores know them; those that number them count from 1, in this order. A success whose result is left out is a
 * separate kind: it has a reason.
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

/** The prefix of the reason of a job that succeeded and whose result could not be kept. */
export const resultNotKept = "result not kept: ";

/** How a claim ends when its lease expires. A job that was claimed ahead may not have started, so that is not its crash. */
export function silence(job: { readonly ahead: boolean }): Outcome {
  return job.ahead ? { kind: "release" } : { kind: "crash", reason: "its lease ran out" };
}

/** What the decision about a held job depends on. */
export interface HeldJob {
  readonly delivery: Delivery;
  readonly attempt: number;
  readonly crashes: number;
  readonly maxCrashes: number;
  readonly cancelRequested: boolean;
  /** Why its cancellation was requested, if a reason was given; a claim starts without one. */
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
 * Decides the next state of a held job. A requested cancel wins over every end but success: the work is done, and any
 * other state would be wrong.
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
 * No count of a job, no version and no epoch is higher: tables refuse more. Something else has set one that is there.
 */
export const maxCount = 1_000_000_000;

/** A crash says nothing about the effect: at-most-once must not run again, the others must. */
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

/** What a job's trail says about the end of a claim; null if the job itself already says it. */
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

/** What happens to a child whose parent ends without success. */
export type AfterFailure = "cancel" | "run";

/** The reason of a job that is cancelled because its parent did not succeed. */
export function orphanReason(parent: { readonly id: string; readonly state: JobState }): string {
  return `its parent ${parent.id} is ${parent.state}`;
}

/** The reason of a job that is cancelled because it did not start in time. */
export const expiredReason = "expired";

/** A success with nothing to record but its result: what almost every job ends with, and what stores write quickly. */
export function isPlainSuccess(outcome: Outcome): outcome is Success & { readonly notKept?: never } {
  return outcome.kind === "succeed" && outcome.notKept === undefined;
}

/** A job one crash short of poison: it runs alone in its process, so its neighbours do not become poison with it. */
export function isFragile(job: { readonly crashes: number; readonly maxCrashes: number }): boolean {
  return job.crashes > 0 && job.crashes >= job.maxCrashes - 1;
}

/**
 * Whether a job may be claimed before its holder has room for it. The death of a process must not cost an at-most-once job its only start, a
 * waiting job must not hold a key, and the next claim of a job whose holder went silent counts as a start.
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

/** Deliveries whose jobs are never claimed ahead, even if they are plain. */
export const neverAhead: readonly Delivery[] = deliveries.filter(
  (delivery) => !mayClaimAhead({ delivery, concurrencyKey: null, rateKey: null, crashes: 0, ahead: false }),
);

/** What the decision after a failure depends on. */
export interface FailedJob {
  readonly delivery: Delivery;
  readonly attempt: number;
  readonly attempts: number;
  readonly crashes: number;
}

/** Decides between another attempt and the end, after a handler threw or timed out. */
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

/** The store usually recovers soon; until then each of its jobs retries periodically. */
const storeBackoff: Backoff = { type: "exponential", delayMs: 1_000, maxMs: 10_000, jitter: 0.2 };

/**
 * Decides after the store failed under a handler's `tx`: the job goes back without using up an attempt. An at-most-once job was dispatched, and
 * is never dispatched again.
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
  // Claims that used up no attempt, including those that failed because of the store.
  const spared = Math.max(0, job.token - job.attempt);
  return { kind: "rollback", delayMs: backoffMs(storeBackoff, spared + 1, random), error };
}
