import { AsyncLocalStorage } from "node:async_hooks";

/** When waiting ends with an error. */
export interface Impatience {
  /** How long no holder has left. */
  readonly longestWaitMs: number;
  readonly stuck: () => Error;
}

/** Admits a bounded number at a time, in order of arrival. */
export class Semaphore {
  readonly #places: number;
  readonly #impatience: Impatience | null;
  readonly #inner = new AsyncLocalStorage<true>();
  #inside = 0;
  /** When a holder last left. */
  #movedAtMs = Number.NEGATIVE_INFINITY;
  readonly #waiting: (() => void)[] = [];

  constructor(places: number, impatience: Impatience | null = null) {
    this.#places = places;
    this.#impatience = impatience;
  }

  /** A call from inside passes freely: it would wait for itself. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#inner.getStore() === true) return work();
    await this.enter();
    try {
      return await this.#inner.run(true, work);
    } finally {
      this.leave();
    }
  }

  async enter(): Promise<void> {
    if (this.#inside >= this.#places) await this.#wait();
    else this.#inside += 1;
  }

  leave(): void {
    this.#movedAtMs = performance.now();
    // The place goes straight to the next in line, so no other can take it in between.
    const next = this.#waiting.shift();
    if (next === undefined) this.#inside -= 1;
    else next();
  }

  #wait(): Promise<void> {
    if (this.#impatience === null) return new Promise((resolve) => this.#waiting.push(resolve));
    const { longestWaitMs, stuck } = this.#impatience;
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout;
      const enter = (): void => {
        clearTimeout(timer);
        resolve();
      };
      // A line that moves is waited in, however long it is.
      const look = (): void => {
        const leftMs = this.#movedAtMs + longestWaitMs - performance.now();
        if (leftMs > 0) {
          timer = setTimeout(look, leftMs);
          return;
        }
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        reject(stuck());
      };
      timer = setTimeout(look, longestWaitMs);
      this.#waiting.push(enter);
    });
  }
}
