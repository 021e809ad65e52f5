/** What one scan looks at, at most. */
const most = 10_000;

/**
 * How many jobs the next scan looks at. Where most jobs match, as many as are wanted; where few do, twice as many each time: so a page costs
 * about what it brings, and a rare job is still found in a few calls.
 */
export class LookAhead {
  #lookAt: number;

  constructor(wanted: number) {
    this.#lookAt = Math.min(most, Math.max(1, wanted));
  }

  /** @param room how many may be looked at in all. */
  within(room: number): number {
    return Math.max(1, Math.min(this.#lookAt, room));
  }

  /** Learns from a scan: how many it was to find, and how many it found. */
  learn(wanted: number, found: number): void {
    if (found < wanted) this.#lookAt = Math.min(most, this.#lookAt * 2);
  }
}
