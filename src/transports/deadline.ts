import type { Clock } from "../clock.ts";

/** What a promise that did not settle in time becomes. */
export const late: unique symbol = Symbol("late");

/** A point in time by which a piece of work has to be done, on the monotonic clock. */
export class Deadline {
  readonly #clock: Clock;
  readonly #at: number;
  readonly #gainedMs: () => number;

  /** @param gainedMs how much is left by what is known now, where that may be more than was known at first. */
  constructor(clock: Clock, inMs: number, gainedMs: () => number = () => 0) {
    this.#clock = clock;
    this.#at = clock.monotonic() + inMs;
    this.#gainedMs = gainedMs;
  }

  get leftMs(): number {
    return Math.max(0, this.#at - this.#clock.monotonic(), this.#gainedMs());
  }

  get isOver(): boolean {
    return this.leftMs === 0;
  }

  /** Calls back once it is over, unless that is cancelled. */
  whenOver(call: () => void): () => void {
    let cancel = (): void => {};
    const look = (): void => {
      cancel = this.#clock.after(this.leftMs, () => (this.isOver ? call() : look()));
    };
    look();
    return () => cancel();
  }

  /** The promise's own end, or {@link late}. A late result is ignored. */
  async within<T>(promise: Promise<T>, mostMs: number = Number.POSITIVE_INFINITY): Promise<T | typeof late> {
    const over = Promise.withResolvers<typeof late>();
    const cancel = this.#clock.after(Math.min(this.leftMs, mostMs), () => over.resolve(late));
    promise.catch(() => {});
    try {
      return await Promise.race([promise, over.promise]);
    } finally {
      cancel();
    }
  }
}
