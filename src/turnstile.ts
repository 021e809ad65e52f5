import { AsyncLocalStorage } from "node:async_hooks";
import { EscapementError } from "./errors.ts";

/**
 * Lets so many through at a time; the others wait in the order in which they came. Transactions that run a caller's function go through
 * one: they take as long as they like, and leave connections to everybody else.
 */
export class Turnstile {
  readonly #places: number;
  readonly #longestWaitMs: number;
  readonly #inner = new AsyncLocalStorage<true>();
  #inside = 0;
  /** When somebody last came out. */
  #movedAtMs = Number.NEGATIVE_INFINITY;
  readonly #waiting: (() => void)[] = [];

  constructor(places: number, longestWaitMs = 60_000) {
    this.#places = places;
    this.#longestWaitMs = longestWaitMs;
  }

  /**
   * Whoever is inside passes freely: it would wait for itself.
   *
   * @throws EscapementError `store-busy` when none of those inside has come to an end for long.
   */
  async pass<T>(work: () => Promise<T>): Promise<T> {
    if (this.#inner.getStore() === true) return work();
    if (this.#inside >= this.#places) await this.#wait();
    else this.#inside += 1;
    try {
      return await this.#inner.run(true, work);
    } finally {
      this.#movedAtMs = performance.now();
      // The place goes straight to the next in line, so that nobody can slip in between.
      const next = this.#waiting.shift();
      if (next === undefined) this.#inside -= 1;
      else next();
    }
  }

  #wait(): Promise<void> {
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout;
      const enter = (): void => {
        clearTimeout(timer);
        resolve();
      };
      // A line that moves is waited in, however long it is.
      const look = (): void => {
        const leftMs = this.#movedAtMs + this.#longestWaitMs - performance.now();
        if (leftMs > 0) {
          timer = setTimeout(look, leftMs);
          return;
        }
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        reject(this.#stuck());
      };
      timer = setTimeout(look, this.#longestWaitMs);
      this.#waiting.push(enter);
    });
  }

  #stuck(): EscapementError {
    return new EscapementError(
      "store-busy",
      `none of ${this.#places} transactions has ended for ${this.#longestWaitMs} ms; look for functions that hang in them`,
    );
  }
}
