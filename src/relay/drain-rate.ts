/** In how many portions the jobs of a second go, so that a trip to the store is worth its while. */
const portionsPerSecond = 10;

/** How many jobs of a backlog may go per second, over all partitions of this process. */
export class DrainRate {
  readonly #perSecond: number;
  readonly #portion: number;
  #left: number;
  #atMs: number;
  #isRefilling = false;

  constructor(perSecond: number, nowMs: number) {
    this.#perSecond = perSecond;
    this.#portion = Math.max(1, perSecond / portionsPerSecond);
    this.#left = this.#portion;
    this.#atMs = nowMs;
  }

  /** Whether one more may go now. */
  take(nowMs: number): boolean {
    if (this.#perSecond === Number.POSITIVE_INFINITY) return true;
    const earned = ((nowMs - this.#atMs) / 1_000) * this.#perSecond;
    // What was not used for a while is not made up for.
    this.#left = Math.min(this.#left + earned, 2 * this.#portion);
    this.#atMs = nowMs;
    if (this.#left < (this.#isRefilling ? this.#portion : 1)) {
      this.#isRefilling = true;
      return false;
    }
    this.#isRefilling = false;
    this.#left -= 1;
    return true;
  }

  /** How long until the next portion may go; 0 when it may go now. */
  waitMs(): number {
    return this.#isRefilling ? ((this.#portion - this.#left) / this.#perSecond) * 1_000 : 0;
  }
}
