import { sleepAwake } from "../clock.ts";
import { EscapementError, isTransient } from "../errors.ts";
import type { Runtime } from "./runtime.ts";

const firstDelayMs = 50;
const maxDelayMs = 1_000;

/** How long to wait before repetition number `attempt` of a store call: doubling from 50 ms to 1 s, with jitter so nodes do not march in step. */
export function reconnectDelayMs(attempt: number, random: number): number {
  const delayMs = Math.min(firstDelayMs * 2 ** Math.min(attempt, 16), maxDelayMs);
  return delayMs * (0.5 + random / 2);
}

/** A call that took longer before its first failure did its work: what counts begins with the failure. */
const longestAnswerMs = 15_000;

/**
 * Repeats a store call that failed in passing. Only for calls that are harmless when repeated, which the contract makes all of them.
 *
 * @param maxAttempts if the runtime has no patience of its own
 */
export async function withRetries<T>(runtime: Runtime, call: () => Promise<T>, maxAttempts = 6): Promise<T> {
  const { clock, patience } = runtime;
  let sinceMs = clock.monotonic();
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      const nowMs = clock.monotonic();
      if (attempt === 1 && nowMs - sinceMs > longestAnswerMs) sinceMs = nowMs;
      if (!isTransient(error)) throw error;
      const goesOn = patience === undefined ? attempt < maxAttempts : patience.goesOn(error, nowMs - sinceMs);
      if (!goesOn) throw error;
      await sleepAwake(clock, reconnectDelayMs(attempt, runtime.random()));
    }
  }
}

/** Opens a store that may be away: for as long as the runtime has patience, whatever one attempt takes. */
export async function opened<T>(
  runtime: Runtime,
  open: () => Promise<T>,
  close: (store: T) => Promise<void>,
) {
  const { clock, patience } = runtime;
  if (patience === undefined) return await open();
  let last: unknown = new EscapementError("store-unavailable", `it did not answer within ${patience.ms} ms`);
  const opening = withRetries(runtime, () =>
    open().catch((error) => {
      last = error;
      throw error;
    }),
  );
  const over = new AbortController();
  const timeUp = sleepAwake(clock, patience.ms, over.signal).then(() => over.signal.aborted);
  try {
    const isOpen = await Promise.race([opening.then(() => true), timeUp]);
    if (isOpen) return await opening;
    opening.then(close).catch(() => {});
    throw last;
  } finally {
    over.abort();
  }
}
