import { type HeldJob, type Outcome, settle, story } from "../../state.ts";

/** A job about which nothing is special; what the core decides for it holds for every job but for what settle_claim adds. */
const anyJob: HeldJob = {
  delivery: "at-least-once",
  attempt: 0,
  crashes: 0,
  maxCrashes: Number.MAX_SAFE_INTEGER,
  cancelRequested: false,
  reason: null,
};

/** How a claim ends, as the server's functions take it (the type `ending`). The core decides; the server adds what its row says. */
export function endingOf(outcome: Outcome) {
  const { state, reason, attempt, rollbacks, delayMs, error, result } = settle(anyJob, outcome);
  const line = story(outcome);
  return {
    kind: outcome.kind,
    state,
    reason,
    attempt_change: attempt,
    rollbacks,
    delay_ms: delayMs === null ? null : Math.trunc(delayMs),
    error,
    result,
    story: line?.kind ?? null,
    story_text: line?.text ?? null,
    story_error: line?.error ?? null,
  };
}
