import { EscapementError } from "../errors.ts";
import type { Store } from "../store/store.ts";

/**
 * The store, opened at its first use and only once. An opening that failed is retried by the next caller: a database that is
 * not up yet is no reason to stay broken.
 */
export class Connection {
  readonly #open: () => Promise<Store>;
  #opening: Promise<Store> | null = null;
  #opened: Store | null = null;
  readonly #closing = new AbortController();

  constructor(open: () => Promise<Store>) {
    this.#open = open;
  }

  store = (): Promise<Store> => {
    if (this.closing.aborted) return Promise.reject(appStopped());
    if (this.#opening === null) {
      const opening = this.#open();
      this.#opening = opening;
      opening.then(
        (store) => {
          this.#opened = store;
        },
        () => {
          this.#opening = null;
        },
      );
    }
    return this.#opening;
  };

  /** Fires when the app has stopped: what follows jobs ends then. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Calls the store. If the app is stopped meanwhile, the error says that, not that a store is closed. */
  ask = async <T>(question: (store: Store) => Promise<T>): Promise<T> => {
    const store = await this.store();
    try {
      return await question(store);
    } catch (error) {
      const isClosed = this.closing.aborted && error instanceof EscapementError && error.code === "stopped";
      throw isClosed ? appStopped() : error;
    }
  };

  /** The store where it is open already: a synchronous transaction cannot wait for it. */
  get opened(): Store | null {
    return this.closing.aborted ? null : this.#opened;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    const store = await this.#opening?.catch(() => null);
    await store?.close();
  }
}

function appStopped(): EscapementError {
  return new EscapementError("stopped", "this app was stopped; create a new one to continue");
}
