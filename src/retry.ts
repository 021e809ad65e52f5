/** How long to wait before the next attempt, already resolved to milliseconds. */
export interface Backoff {
  readonly type: "exponential" | "fixed";
  readonly delayMs: number;
  readonly maxMs: number;
  /** A share of the delay, 0 to 1: the wait is moved by up to that much either way. */
  readonly jitter: number;
}

export const defaultBackoff: Backoff = {
  type: "exponential",
  delayMs: 30_000,
  maxMs: 15 * 60_000,
  jitter: 0.1,
};

/** The longest time from the first failure to the last attempt, not counting the attempts themselves. */
export function retrySpanMs(backoff: Backoff, attempts: number): number {
  let span = 0;
  for (let failures = 1; failures < attempts; failures += 1) span += backoffMs(backoff, failures, 1);
  return span;
}

/**
 * The wait after the `failures`-th failure: 30 s, 1 m, 2 m, 4 m, 8 m, then 15 m with the defaults.
 *
 * @param random a number from 0 (inclusive) to 1, from outside, so a simulation replays.
 */
export function backoffMs(backoff: Backoff, failures: number, random: number): number {
  const growth = backoff.type === "exponential" ? 2 ** Math.min(failures - 1, 52) : 1;
  const delayMs = Math.min(backoff.delayMs * growth, backoff.maxMs);
  const offset = delayMs * backoff.jitter * (2 * random - 1);
  return Math.max(0, Math.min(Math.round(delayMs + offset), backoff.maxMs));
}
