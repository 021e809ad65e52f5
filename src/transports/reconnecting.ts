import type { Clock } from "../clock.ts";
import { reconnectDelayMs } from "../runtime/transient.ts";

/** A connection that has held for this long was a good one, although nothing came over it. */
const steadyMs = 60_000;

/**
 * Counts how often in a row a source could not be read. A connection that was made proves nothing: one that breaks at the first message
 * would be made again in a tight loop, with a warning each time. So the count starts over at a delivery, or when a connection has held.
 */
export class Reconnecting {
  readonly #clock: Clock;
  #openedAt: number | null = null;
  #failures = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  opened(): void {
    this.#openedAt = this.#clock.monotonic();
  }

  delivered(): void {
    this.#failures = 0;
  }

  /** How long to wait now, and whether this is the first failure in a row. */
  failed(): { readonly isFirst: boolean; readonly delayMs: number } {
    const now = this.#clock.monotonic();
    if (this.#openedAt !== null && now - this.#openedAt >= steadyMs) this.#failures = 0;
    this.#openedAt = null;
    this.#failures += 1;
    return { isFirst: this.#failures === 1, delayMs: reconnectDelayMs(this.#failures, Math.random()) };
  }
}
