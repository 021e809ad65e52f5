import type { Clock } from "./clock.ts";

/** What a promise that did not settle in time becomes. */
export const late: unique symbol = Symbol("late");

/** A point in time by which a piece of work has to be done, on the monotonic clock. */
export class Deadline {
  readonly #clock: Clock;
  readonly #at: number;

  constructor(clock: Clock, inMs: number) {
    this.#clock = clock;
    this.#at = clock.monotonic() + inMs;
  }

  get leftMs(): number {
    return Math.max(0, this.#at - this.#clock.monotonic());
  }

  get isOver(): boolean {
    return this.leftMs === 0;
  }

  /** The promise's own end, or {@link late}. What a late promise comes to is nobody's concern any more. */
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
