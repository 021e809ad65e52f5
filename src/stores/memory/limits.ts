import type { ClaimName, RateLimit } from "../../store.ts";
import type { Row } from "./row.ts";
import type { Space } from "./space.ts";

/**
 * When the limits let a due job go: at or before `now` means at once, later for a rate window that must end first,
 * null where only something else than time can open the way (a pause, active jobs, a name the claimer does not run).
 */
export function opensAt(space: Space, row: Row, name: ClaimName | undefined, now: number): number | null {
  if (name === undefined) return null;
  const queue = space.queues.get(row.queue);
  if (queue?.paused === true) return null;
  if (isFull(space.indexes.activeInQueue(row.queue), queue?.concurrency ?? null)) return null;
  if (row.concurrencyKey !== null) {
    if (isFull(space.indexes.activeUnderKey(row.concurrencyKey), name.concurrency)) return null;
  }
  return Math.max(
    windowOpensAt(space, queueWindow(row.queue), queue?.rate ?? null, now),
    row.rateKey === null ? now : windowOpensAt(space, keyWindow(row.rateKey), name.rate, now),
  );
}

/** Counts a claim in the windows of its queue and of its key. */
export function countClaim(space: Space, row: Row, name: ClaimName | undefined, now: number): void {
  countInWindow(space, queueWindow(row.queue), space.queues.get(row.queue)?.rate ?? null, now);
  if (row.rateKey !== null) countInWindow(space, keyWindow(row.rateKey), name?.rate ?? null, now);
}

/** Forgets windows that are over. */
export function pruneWindows(space: Space, now: number): void {
  for (const [key, window] of space.windows) {
    if (now >= window.startedAt + window.perMs) space.windows.delete(key);
  }
}

function isFull(active: number, limit: number | null): boolean {
  return limit !== null && active >= limit;
}

export const queueWindow = (queue: string): string => `queue ${queue}`;
export const keyWindow = (rateKey: string): string => `key ${rateKey}`;

function windowOpensAt(space: Space, key: string, rate: RateLimit | null, now: number): number {
  const window = rate === null ? undefined : openWindow(space, key, rate, now);
  if (rate === null || window === undefined || window.count < rate.limit) return now;
  return window.startedAt + rate.perMs;
}

function countInWindow(space: Space, key: string, rate: RateLimit | null, now: number): void {
  if (rate === null) return;
  const window = openWindow(space, key, rate, now) ?? { startedAt: now, count: 0 };
  space.windows.set(key, { startedAt: window.startedAt, perMs: rate.perMs, count: window.count + 1 });
}

/** A window from the future is the trace of a clock that was set back; waiting for it to end could take years. */
function openWindow(space: Space, key: string, rate: RateLimit, now: number) {
  const window = space.windows.get(key);
  if (window === undefined || now < window.startedAt || now >= window.startedAt + rate.perMs)
    return undefined;
  return window;
}
