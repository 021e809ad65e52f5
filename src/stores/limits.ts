import type { ClaimParams, RateLimit } from "../store/claims.ts";
import type { QueueConfig, RateWindow as UsedWindow } from "../store/queues.ts";
import { instantOf } from "../unreadable.ts";

export type QueueState = Omit<QueueConfig, "queue">;

/** A queue that was never configured. */
export const unlimited: QueueState = { paused: false, concurrency: null, rate: null };

/** Whether a queue has its own limit, so none of its jobs is claimed ahead. */
export function isLimited({ concurrency, rate }: QueueState): boolean {
  return concurrency !== null || rate !== null;
}

/** Queues from which the claimer wants at least one job. */
export function askedQueues(queues: NonNullable<ClaimParams["queues"]>): string[] {
  return queues.filter(({ limit }) => limit > 0).map(({ queue }) => queue);
}

/** Claims counted against a rate limit, in a window that started with the first of them. */
export interface RateWindow {
  readonly startedAt: number;
  readonly used: number;
  readonly perMs: number;
}

/**
 * A window from the future means that the clock was set back; waiting for it to end could take years. Nor is one open whose times are not
 * numbers, since something else wrote them.
 */
function isOpen({ startedAt }: RateWindow, perMs: number, now: number): boolean {
  return now >= startedAt && now < startedAt + perMs;
}

/** When a rate allows the next claim. */
export function windowOpensAt(window: RateWindow | undefined, rate: RateLimit, now: number): number {
  if (window === undefined || !isOpen(window, rate.perMs, now) || window.used < rate.limit) return now;
  return window.startedAt + rate.perMs;
}

/** The window after one more claim. */
export function countInWindow(window: RateWindow | undefined, { perMs }: RateLimit, now: number): RateWindow {
  if (window === undefined || !isOpen(window, perMs, now)) return { startedAt: now, used: 1, perMs };
  return { startedAt: window.startedAt, used: window.used + 1, perMs };
}

/** What `usage` answers; null when the window is not open. */
export function usedOf(window: RateWindow, now: number): UsedWindow | null {
  if (!isOpen(window, window.perMs, now)) return null;
  return { ...window, startedAt: instantOf(window.startedAt) };
}
