import type { Logger } from "../log.ts";
import type { Notice } from "../store/notices.ts";

/** Who wants a store's notices in this process. One that throws does not keep them from the others. */
export class Listeners {
  readonly #log: Logger;
  readonly #listeners = new Set<(notice: Notice) => void>();

  constructor(log: Logger) {
    this.#log = log;
  }

  get size(): number {
    return this.#listeners.size;
  }

  /** Returns what removes it again. */
  add(listener: (notice: Notice) => void): () => void {
    // A separate function for each subscription: the same listener may be passed twice.
    const own = (notice: Notice): void => listener(notice);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  notify(notices: readonly Notice[]): void {
    for (const listener of this.#listeners) {
      try {
        for (const notice of notices) listener(notice);
      } catch (error) {
        this.#log.error({ error }, "a listener for notices of the store failed");
      }
    }
  }

  clear(): void {
    this.#listeners.clear();
  }
}
