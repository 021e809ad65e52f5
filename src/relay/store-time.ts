/**
 * The store's clock as this process may rely on it: a lower bound, from an answer that told the time. The answer was made before it arrived,
 * so the store's time is by now at least what it said plus what has passed here since.
 */
export class StoreTime {
  #offsetMs: number | null = null;

  /** The latest answer counts: a store's clock may be set back, and then older ones mislead. */
  heard(now: Date, receivedAtMs: number): void {
    this.#offsetMs = now.getTime() - receivedAtMs;
  }

  /** The earliest that the store's time can be at this moment of the monotonic clock. */
  atLeast(monotonicMs: number): number {
    return this.#offsetMs === null ? Number.NEGATIVE_INFINITY : monotonicMs + this.#offsetMs;
  }

  /** The moment of the monotonic clock from which on the store's time has surely come to this instant. */
  reachedAtMs(instant: Date): number {
    return this.#offsetMs === null ? Number.POSITIVE_INFINITY : instant.getTime() - this.#offsetMs;
  }
}
