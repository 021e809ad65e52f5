/** How many jobs of a backlog may go per second, over all partitions of this process; what is not used is kept for a second at the most. */
export class DrainRate {
  readonly #perSecond: number;
  #left: number;
  #atMs: number;

  constructor(perSecond: number, nowMs: number) {
    this.#perSecond = perSecond;
    this.#left = Math.max(1, perSecond);
    this.#atMs = nowMs;
  }

  take(nowMs: number): boolean {
    if (this.#perSecond === Number.POSITIVE_INFINITY) return true;
    const earned = ((nowMs - this.#atMs) / 1_000) * this.#perSecond;
    this.#left = Math.min(this.#left + earned, Math.max(1, this.#perSecond));
    this.#atMs = nowMs;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }

  /** How long until the next one may go. */
  waitMs(): number {
    return this.#left >= 1 ? 0 : ((1 - this.#left) / this.#perSecond) * 1_000;
  }
}
