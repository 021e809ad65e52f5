import { recordError } from "../errors.ts";
import type { PublishResult } from "../message/transport.ts";
import { type Backoff, backoffMs } from "../retry.ts";
import type { Outcome } from "../state.ts";
import type { ClaimedJob } from "../store/claims.ts";

/**
 * Between two publishes of a job. A broker that hiccups is back in seconds, so this starts sooner than retries of
 * handlers.
 */
const dispatchBackoff: Backoff = { type: "exponential", delayMs: 1_000, maxMs: 60_000, jitter: 0.1 };
/** A receiver may ask for a pause, but not an endless one. */
const longestRetryAfterMs = 3_600_000;

/** Decides what a broker's answer means for a job. Pure. */
export function verdictOf(job: ClaimedJob, result: PublishResult, random: number): Outcome {
  if (result.kind === "acknowledged") return { kind: "succeed", result: null };
  const error = JSON.stringify(recordError(result.error));
  if (result.kind === "ambiguous") {
    if (job.delivery === "at-most-once") {
      return { kind: "lose", reason: `whether it was published is unknown: ${result.error.message}` };
    }
    return { kind: "rollback", delayMs: retryInMs(job, 0, random), error };
  }
  if (job.delivery === "at-most-once")
    return { kind: "die", reason: "its publish was refused, and at-most-once is never retried", error };
  if (result.permanent) return { kind: "die", reason: "its publish was refused for good", error };
  return { kind: "rollback", delayMs: retryInMs(job, result.retryAfterMs ?? 0, random), error };
}

/** The token rises each time the job is named, so it counts the publishes even when the owner changes. */
function retryInMs(job: ClaimedJob, retryAfterMs: number, random: number): number {
  const ownMs = backoffMs(dispatchBackoff, Math.max(1, job.token), random);
  return Math.max(ownMs, Math.min(retryAfterMs, longestRetryAfterMs));
}

/**
 * The outcome of a job that an earlier owner had named; null: it is published again. Whether the earlier owner had
 * published it is unknown, and an at-most-once job must not be published twice.
 */
export function verdictOnTakeover(job: ClaimedJob, isKnown: boolean): Outcome | null {
  if (job.delivery === "at-most-once") {
    return {
      kind: "lose",
      reason: "its relay lost the partition before it recorded whether the job was published",
    };
  }
  return job.cancelRequested || !isKnown ? { kind: "release" } : null;
}
