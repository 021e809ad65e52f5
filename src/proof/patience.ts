import type { FaultWindow } from "./history.ts";

/**
 * By when something must have happened that takes at most so long while nothing goes wrong. A fault that strikes before it is done
 * begins the count anew at its end: whoever took over may be the next to be struck.
 *
 * @param afterFaultMs how long it takes behind what a fault has left to catch up with.
 */
export function deadlineAfter(
  fromMs: number,
  withinMs: number,
  faults: readonly FaultWindow[],
  afterFaultMs = withinMs,
): number {
  let untilMs = fromMs + withinMs;
  for (const fault of faults.toSorted((a, b) => a.fromMs - b.fromMs)) {
    if (fault.fromMs > untilMs) break;
    if (fault.untilMs >= fromMs) untilMs = Math.max(untilMs, fault.untilMs + afterFaultMs);
  }
  return untilMs;
}
