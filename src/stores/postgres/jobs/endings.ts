import { type Outcome, outcomeKindOf } from "../../../state.ts";

/** How a claim ended, as the server's functions take it (the type `ending`). What follows from it they decide by functions/00-policy.sql. */
export function endingOf(outcome: Outcome) {
  const { reason, notKept, delayMs, error, result }: Said = outcome;
  return {
    kind: outcomeKindOf(outcome),
    reason: reason ?? notKept ?? null,
    delay_ms: delayMs === undefined ? null : Math.trunc(delayMs),
    error: error ?? null,
    result: result ?? null,
  };
}

/** What outcomes say, each of them a part of it. */
interface Said {
  readonly reason?: string;
  readonly notKept?: string;
  readonly delayMs?: number;
  readonly error?: string;
  readonly result?: string | null;
}
