import type { ErrorRecord } from "../errors.ts";
import type { Emit } from "../events.ts";
import type { Outcome } from "../state.ts";
import type { ClaimedJob, FinishResult } from "../store.ts";

/** Tells the app's listeners what the store has written about a named job. */
export function announce(emit: Emit, job: ClaimedJob, outcome: Outcome, result: FinishResult): void {
  if (result.outcome === "stale") return emit("stale", { job });
  const reason = "reason" in outcome ? outcome.reason : "";
  switch (result.state) {
    case "succeeded":
      return emit("succeeded", { job, result: null, ms: 0, lateMs: null });
    case "dead":
      return emit("dead", { job, reason, error: errorOf(outcome), ms: 0, lateMs: null });
    case "lost":
      return emit("lost", { job, reason });
    case "cancelled":
      return emit("cancelled", { job, reason: null });
    default:
      if (outcome.kind === "release") emit("released", { job });
  }
}

function errorOf(outcome: Outcome): ErrorRecord | null {
  return "error" in outcome ? (JSON.parse(outcome.error) as ErrorRecord) : null;
}
