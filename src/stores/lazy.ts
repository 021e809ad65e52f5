import { EscapementError } from "../errors.ts";

/** Something that is opened when it is first needed, again after that has failed, and never more once it was closed. */
export class Lazy<T> {
  readonly #what: string;
  readonly #open: () => Promise<T>;
  #opened: Promise<T> | null = null;
  #isClosed = false;

  constructor(what: string, open: () => Promise<T>) {
    this.#what = what;
    this.#open = open;
  }

  /** @throws EscapementError `stopped` after {@link close}: a late caller must not open what would never be closed. */
  async get(): Promise<T> {
    if (this.#isClosed)
      throw new EscapementError("stopped", `${this.#what} is closed; create another one to continue`);
    this.#opened ??= this.#open().catch((error: unknown) => {
      this.#opened = null;
      throw error;
    });
    return this.#opened;
  }

  /** What is to be closed; null if it was not open. */
  async close(): Promise<T | null> {
    this.#isClosed = true;
    const opened = await this.#opened?.catch(() => null);
    this.#opened = null;
    return opened ?? null;
  }
}
