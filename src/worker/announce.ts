import type { ErrorRecord } from "../errors.ts";
import type { Emit, Timing } from "../events.ts";
import type { Logger } from "../log.ts";
import type { Outcome } from "../state.ts";
import type { ClaimedJob, FinishResult } from "../store.ts";

/** Tells the app's listeners what the store has written about a claim. */
export function announce(
  emit: Emit,
  job: ClaimedJob,
  outcome: Outcome,
  result: FinishResult,
  timing: Timing,
): void {
  if (result.outcome === "stale") return emit("stale", { job });
  const reason = "reason" in outcome ? outcome.reason : "";
  const error = "error" in outcome ? (JSON.parse(outcome.error) as ErrorRecord) : null;
  switch (result.state) {
    case "succeeded": {
      const value: unknown =
        outcome.kind === "succeed" && outcome.result !== null ? JSON.parse(outcome.result) : null;
      return emit("succeeded", { job, result: value, ...timing });
    }
    case "dead":
      return emit("dead", { job, reason, error, ...timing });
    case "lost":
      return emit("lost", { job, reason });
    case "cancelled":
      return emit("cancelled", { job, reason: null });
    default:
      if (outcome.kind === "retry" && error !== null)
        return emit("failed", { job, error, retryInMs: outcome.delayMs, ...timing });
      if (outcome.kind === "rollback" && error !== null)
        return emit("rolledBack", { job, error, retryInMs: outcome.delayMs });
      if (outcome.kind === "crash") return emit("crashed", { job, reason });
      if (outcome.kind === "snooze") return emit("snoozed", { job, delayMs: outcome.delayMs });
      if (outcome.kind === "release") return emit("released", { job });
  }
}

/** A success whose result had to be left out is a success; but whoever counts on the result should hear of it. */
export function warnNotKept(log: Logger, { id, name }: ClaimedJob, outcome: Outcome): void {
  if (outcome.kind !== "succeed" || outcome.notKept === undefined) return;
  log.warn({ job: id, name }, `job ${JSON.stringify(id)} has succeeded, ${outcome.notKept}`);
}
