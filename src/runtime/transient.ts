import { sleepAwake } from "../clock.ts";
import { isTransient } from "../errors.ts";
import type { Runtime } from "./runtime.ts";

const firstDelayMs = 50;
const maxDelayMs = 1_000;

/** How long to wait before the `tries`-th repetition of a store call: doubling from 50 ms to 1 s, with jitter so nodes do not march in step. */
export function reconnectDelayMs(tries: number, random: number): number {
  const delayMs = Math.min(firstDelayMs * 2 ** Math.min(tries, 16), maxDelayMs);
  return delayMs * (0.5 + random / 2);
}

/** Repeats a store call that failed in passing. Only for calls that are harmless when repeated, which the contract makes all of them. */
export async function withRetries<T>(runtime: Runtime, call: () => Promise<T>, maxTries = 6): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await call();
    } catch (error) {
      if (tries >= maxTries || !isTransient(error)) throw error;
      runtime.onRetry?.(error);
      await sleepAwake(runtime.clock, reconnectDelayMs(tries, runtime.random()));
    }
  }
}
