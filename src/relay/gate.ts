import type { PublishResult } from "../transport.ts";

const firstCloseMs = 100;
const longestCloseMs = 5_000;

/**
 * How much a transport is given. When nothing of a batch gets through it is left alone for a while, twice as long each time, and
 * then given half as much as before: a broker that is down must not cost each waiting job a rollback.
 */
export class Gate {
  #failures = 0;
  #closedUntilMs = Number.NEGATIVE_INFINITY;

  isOpen(nowMs: number): boolean {
    return nowMs >= this.#closedUntilMs;
  }

  /** How many of `most` may be in flight. */
  width(most: number): number {
    return Math.max(1, Math.floor(most / 2 ** Math.min(this.#failures, 30)));
  }

  /** Returns for how long the gate is closed now; 0 when it is open. */
  heard(results: readonly PublishResult[], nowMs: number): number {
    const isThrough = results.some(
      (result) => result.kind === "acknowledged" || (result.kind === "refused" && result.permanent),
    );
    if (isThrough) {
      // It is there: what closed the gate before, perhaps for long since it had been away, no longer counts.
      this.#failures = 0;
      this.#closedUntilMs = Number.NEGATIVE_INFINITY;
      return 0;
    }
    const ownMs = Math.min(firstCloseMs * 2 ** Math.min(this.#failures, 16), longestCloseMs);
    const askedMs = results.map((result) => (result.kind === "refused" ? (result.retryAfterMs ?? 0) : 0));
    const closedMs = Math.max(ownMs, Math.min(Math.max(0, ...askedMs), longestCloseMs));
    this.#failures += 1;
    this.#closedUntilMs = Math.max(this.#closedUntilMs, nowMs + closedMs);
    return closedMs;
  }
}
