import type { ClaimName, RateLimit } from "../../store/claims.ts";
import { countInWindow, windowOpensAt } from "../limits.ts";
import type { Data } from "./data/data.ts";
import type { Row } from "./rows.ts";

/**
 * When the limits allow a due job: at or before `now` means at once, later for a rate window that must end first,
 * null if time alone cannot open the way (a pause, active jobs, a name the claimer does not run).
 */
export function opensAt(data: Data, row: Row, name: ClaimName | undefined, now: number): number | null {
  if (name === undefined) return null;
  const queue = data.queues.get(row.queue);
  if (queue?.paused === true) return null;
  if (isFull(data.indexes.activeInQueue(row.queue), queue?.concurrency ?? null)) return null;
  if (row.concurrencyKey !== null) {
    if (isFull(data.indexes.activeUnderKey(row.concurrencyKey), name.concurrency)) return null;
  }
  return Math.max(
    rateOpensAt(data, queueWindow(row.queue), queue?.rate ?? null, now),
    row.rateKey === null ? now : rateOpensAt(data, keyWindow(row.rateKey), name.rate, now),
  );
}

/** Counts a claim against the windows of its queue and of its key. */
export function countClaim(data: Data, row: Row, name: ClaimName | undefined, now: number): void {
  countAgainst(data, queueWindow(row.queue), data.queues.get(row.queue)?.rate ?? null, now);
  if (row.rateKey !== null) countAgainst(data, keyWindow(row.rateKey), name?.rate ?? null, now);
}

/** Forgets windows that are over. */
export function pruneWindows(data: Data, now: number): void {
  for (const [key, window] of data.windows) {
    if (now >= window.startedAt + window.perMs) data.windows.delete(key);
  }
}

function isFull(active: number, limit: number | null): boolean {
  return limit !== null && active >= limit;
}

export const queueWindow = (queue: string): string => `queue ${queue}`;
export const keyWindow = (rateKey: string): string => `key ${rateKey}`;

function rateOpensAt(data: Data, key: string, rate: RateLimit | null, now: number): number {
  return rate === null ? now : windowOpensAt(data.windows.get(key), rate, now);
}

function countAgainst(data: Data, key: string, rate: RateLimit | null, now: number): void {
  if (rate !== null) data.windows.set(key, countInWindow(data.windows.get(key), rate, now));
}
