/**
 * Time in the random test. Every operation comes a step after the one before, and every span that makes an instant
 * has a remainder of its own within the step. So two instants of different making are either the same in every
 * store or at least a minute apart, and a clock that flows a little while the test runs changes no answer.
 */
const minuteMs = 60_000;

/** Between two operations. */
export const stepMs = 10 * minuteMs;

/** The longest that a run may take in real time; beyond it a flowing clock could change answers. */
export const maxRealMs = 50_000;

/** Spans for instants, by their remainder in minutes. */
export const spans = {
  short: 21 * minuteMs,
  long: 182 * minuteMs,
  retry: 33 * minuteMs,
  snooze: 94 * minuteMs,
  update: 45 * minuteMs,
  debounce: 66 * minuteMs,
  debounceMax: 127 * minuteMs,
} as const;

/** Remainder 8: instants that the caller names. */
export const namedRemainderMs = 8 * minuteMs;

/** Spans that are only ever compared with now. */
export const lease = 245 * minuteMs;
export const shortLease = 65 * minuteMs;
export const rateWindow = 155 * minuteMs;
export const uniqueWindow = 205 * minuteMs;
export const expiry = 120 * minuteMs;
export const retention = 605 * minuteMs;
export const ownRetentions = [95 * minuteMs, 1_205 * minuteMs] as const;
export const nodeLife = 95 * minuteMs;

/** An instant so many milliseconds after the store's time at the start of the run. */
export type At = (ms: number) => Date;

/** Whole minutes since the start, which is how instants of different stores are compared. */
export function minutesSince(base: Date, instant: Date): string {
  return `+${Math.floor((instant.getTime() - base.getTime()) / minuteMs)}m`;
}
