import type { Notice } from "../../store/notices.ts";

/** Notifies this store's own listeners. */
export class Listeners {
  readonly #listeners = new Set<(notice: Notice) => void>();
  readonly #failed: (error: unknown) => void;

  constructor(failed: (error: unknown) => void) {
    this.#failed = failed;
  }

  get size(): number {
    return this.#listeners.size;
  }

  add(listener: (notice: Notice) => void): () => void {
    // A separate function for each subscription: the same listener may be passed twice.
    const own = (notice: Notice): void => listener(notice);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  tell(notices: readonly Notice[]): void {
    for (const listener of this.#listeners) {
      try {
        for (const notice of notices) listener(notice);
      } catch (error) {
        this.#failed(error);
      }
    }
  }
}
