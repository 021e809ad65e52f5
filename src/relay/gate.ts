import type { PublishResult } from "../transport.ts";

const firstCloseMs = 100;
const longestCloseMs = 5_000;

/**
 * How much a transport is given. When nothing of a batch gets through it is left alone for a while, twice as long each time, and
 * then given half as much as before: a broker that is down must not cost each waiting job a rollback.
 */
export class Gate {
  #failures = 0;
  /** When it was last closed, for a reason of its own. */
  #closedAtMs = Number.NEGATIVE_INFINITY;
  #closedUntilMs = Number.NEGATIVE_INFINITY;

  isOpen(nowMs: number): boolean {
    return nowMs >= this.#closedUntilMs;
  }

  /** How many of `most` may be in flight. */
  width(most: number): number {
    return Math.max(1, Math.floor(most / 2 ** Math.min(this.#failures, 30)));
  }

  /**
   * What came of a batch that was begun at some time. Several are under way at once, and what ails the broker fails them all: those begun
   * before the gate was closed tell nothing that it does not know.
   *
   * @returns for how long the gate is closed now; 0 when it is open.
   */
  heard(results: readonly PublishResult[], begunAtMs: number, nowMs: number): number {
    const isThrough = results.some(
      (result) =>
        result.kind === "acknowledged" ||
        (result.kind === "refused" && (result.permanent || result.ofJob === true)),
    );
    if (isThrough) {
      // It is there: what closed the gate before, perhaps for long since it had been away, no longer counts.
      this.#failures = 0;
      this.#closedUntilMs = Number.NEGATIVE_INFINITY;
      return 0;
    }
    const askedMs = results.map((result) => (result.kind === "refused" ? (result.retryAfterMs ?? 0) : 0));
    this.#closeFor(Math.min(Math.max(0, ...askedMs), longestCloseMs), nowMs);
    if (begunAtMs >= this.#closedAtMs) {
      this.#closeFor(Math.min(firstCloseMs * 2 ** Math.min(this.#failures, 16), longestCloseMs), nowMs);
      this.#failures += 1;
      this.#closedAtMs = nowMs;
    }
    return Math.max(0, this.#closedUntilMs - nowMs);
  }

  #closeFor(ms: number, nowMs: number): void {
    this.#closedUntilMs = Math.max(this.#closedUntilMs, nowMs + ms);
  }
}
