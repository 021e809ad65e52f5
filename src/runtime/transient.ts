import { sleepAwake } from "../clock.ts";
import { isTransient } from "../errors.ts";
import type { Runtime } from "./runtime.ts";

const firstDelayMs = 50;
const maxDelayMs = 1_000;

/** How long to wait before repetition number `attempt` of a store call: doubling from 50 ms to 1 s, with jitter so nodes do not march in step. */
export function reconnectDelayMs(attempt: number, random: number): number {
  const delayMs = Math.min(firstDelayMs * 2 ** Math.min(attempt, 16), maxDelayMs);
  return delayMs * (0.5 + random / 2);
}

/** Repeats a store call that failed in passing. Only for calls that are harmless when repeated, which the contract makes all of them. */
export async function withRetries<T>(runtime: Runtime, call: () => Promise<T>, maxAttempts = 6): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      if (attempt >= maxAttempts || !isTransient(error)) throw error;
      runtime.onRetry?.(error);
      await sleepAwake(runtime.clock, reconnectDelayMs(attempt, runtime.random()));
    }
  }
}
