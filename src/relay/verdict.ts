import { recordError } from "../errors.ts";
import { type Backoff, backoffMs } from "../retry.ts";
import type { Outcome } from "../state.ts";
import type { ClaimedJob } from "../store.ts";
import type { PublishResult } from "../transport.ts";

/** Between two tries of a publish. A broker that hiccups is back in seconds, so it starts sooner than the retries of handlers do. */
const dispatchBackoff: Backoff = { type: "exponential", delayMs: 1_000, maxMs: 60_000, jitter: 0.1 };
/** A receiver may ask to be left alone, but not for ever. */
const longestRetryAfterMs = 3_600_000;

/** Decides what a broker's word means for a job. Pure. */
export function verdictOf(job: ClaimedJob, result: PublishResult, random: number): Outcome {
  if (result.kind === "acknowledged") return { kind: "succeed", result: null };
  const error = JSON.stringify(recordError(result.error));
  if (result.kind === "ambiguous") {
    if (job.delivery === "at-most-once") {
      return { kind: "lose", reason: `nobody knows whether it was published: ${result.error.message}` };
    }
    return { kind: "rollback", delayMs: retryInMs(job, 0, random), error };
  }
  if (job.delivery === "at-most-once")
    return { kind: "die", reason: "its publish was refused, and at-most-once is never tried again", error };
  if (result.permanent) return { kind: "die", reason: "its publish was refused for good", error };
  return { kind: "rollback", delayMs: retryInMs(job, result.retryAfterMs ?? 0, random), error };
}

/** The token rises with each naming, so it counts the tries also over a change of owner. */
function retryInMs(job: ClaimedJob, retryAfterMs: number, random: number): number {
  const ownMs = backoffMs(dispatchBackoff, Math.max(1, job.token), random);
  return Math.max(ownMs, Math.min(retryAfterMs, longestRetryAfterMs));
}

/**
 * What becomes of a job that an earlier owner had named, before anything is published again; null: it is published. Whether the earlier owner
 * got so far is unknown, and at-most-once must not ask twice.
 */
export function verdictOnTakeover(job: ClaimedJob, isKnown: boolean): Outcome | null {
  if (job.delivery === "at-most-once") {
    return { kind: "lose", reason: "its relay was gone before it told whether the job was published" };
  }
  return job.cancelRequested || !isKnown ? { kind: "release" } : null;
}
