import type { ErrorRecord } from "../errors.ts";
import type { Emit, Timing } from "../events.ts";
import type { Logger } from "../log.ts";
import type { Outcome } from "../state.ts";
import type { ClaimedJob, FinishResult } from "../store/claims.ts";

/** A published job: no handler ran here. */
const noTiming: Timing = { ms: 0, lateMs: null };

/**
 * Emits what the store has written about a job that this process held.
 *
 * @param timing null for a published job, whose rollback was reported as `dispatchRetry` when it was decided.
 */
export function announce(
  emit: Emit,
  job: ClaimedJob,
  outcome: Outcome,
  result: FinishResult,
  timing: Timing | null,
): void {
  if (result.outcome === "stale") return emit("stale", { job });
  const reason = "reason" in outcome ? outcome.reason : "";
  const error = "error" in outcome ? (JSON.parse(outcome.error) as ErrorRecord) : null;
  const measured = timing ?? noTiming;
  switch (result.state) {
    case "succeeded": {
      const value: unknown =
        outcome.kind === "succeed" && outcome.result !== null ? JSON.parse(outcome.result) : null;
      return emit("succeeded", { job, result: value, ...measured });
    }
    case "dead":
      return emit("dead", { job, reason, error, ...measured });
    case "lost":
      return emit("lost", { job, reason });
    case "cancelled":
      return emit("cancelled", { job, reason: null });
    default:
      if (outcome.kind === "retry" && error !== null)
        return emit("failed", { job, error, retryInMs: outcome.delayMs, ...measured });
      if (outcome.kind === "rollback" && error !== null && timing !== null)
        return emit("rolledBack", { job, error, retryInMs: outcome.delayMs });
      if (outcome.kind === "crash") return emit("crashed", { job, reason });
      if (outcome.kind === "snooze") return emit("snoozed", { job, delayMs: outcome.delayMs });
      if (outcome.kind === "release") return emit("released", { job });
  }
}

/** A success whose result had to be left out is still a success, but anyone who needs the result should know. */
export function warnNotKept(log: Logger, { id, name }: ClaimedJob, outcome: Outcome): void {
  if (outcome.kind !== "succeed" || outcome.notKept === undefined) return;
  log.warn({ job: id, name }, `job ${JSON.stringify(id)} has succeeded, ${outcome.notKept}`);
}
