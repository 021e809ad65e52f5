import { setTimeout as delay } from "node:timers/promises";
import { EscapementError } from "../../errors.ts";
import type { PgClient, PgPool, PgStatement } from "./client.ts";
import { isConflict, spoilsConnection, translateError } from "./errors.ts";

export type Value = string | number | boolean | null;

/**
 * Runs one statement whose only column, `answer`, is JSON, and returns what it says.
 *
 * @param often whether the same text is run again and again, so that the server should keep it prepared where it can.
 */
export type Run = (sql: string, values: readonly Value[], often?: boolean) => Promise<unknown>;

export interface LinkOptions {
  readonly pool: PgPool;
  /** Whether the pool is the store's own, to be ended with it. */
  readonly owned: boolean;
  readonly callTimeoutMs: number;
  /** For messages: where the server is, without a password. */
  readonly place: string;
}

/** Statements that are kept prepared, of each connection. There are a handful of them, and a few more for unusual batches. */
const maxPrepared = 50;
/** How often a call is tried that stood in another's way. */
const maxTries = 8;
const maxPauseMs = 30;

/** The way to the server: every call has a deadline, and a connection that misses it is thrown away. */
export class Link {
  readonly #options: LinkOptions;
  readonly #open = new Set<Promise<unknown>>();
  /** By their text. */
  readonly #names = new Map<string, string>();
  #prepares = false;
  #closed = false;

  constructor(options: LinkOptions) {
    this.#options = options;
    // A connection that breaks is replaced when it is needed; without these listeners it would end the process. One that is new gets its
    // own before anybody else hears of it: its first answer and its end may come in the same packet.
    options.pool.on("error", ignore);
    options.pool.on("connect", (client) => client.on("error", () => {}));
  }

  get place(): string {
    return this.#options.place;
  }

  /** From now on, statements that are run often are prepared: what is at the other end of a connection is one session of the server. */
  prepareOften(): void {
    this.#prepares = this.#options.owned;
  }

  readonly run: Run = (sql, values, often = false) =>
    this.#tracked(this.#runPatiently(often ? this.#named(sql, values) : { text: sql, values }));

  #named(text: string, values: readonly Value[]): PgStatement {
    const known = this.#names.get(text);
    if (known !== undefined) return { name: known, text, values };
    if (!this.#prepares || this.#names.size >= maxPrepared) return { text, values };
    const name = `escapement_${this.#names.size}`;
    this.#names.set(text, name);
    return { name, text, values };
  }

  /**
   * Gives the function a connection of its own. It is put back when the function resolves, and thrown away when it rejects, or when what it
   * resolves with says that the connection is of no more use.
   */
  borrow<T>(
    use: (client: PgClient) => Promise<T>,
    isBroken: (value: T) => boolean = () => false,
  ): Promise<T> {
    const borrowed = this.#borrow(use, () => true, isBroken).catch((error: unknown) => {
      throw translateError(error, this.place);
    });
    return this.#tracked(borrowed);
  }

  /** Rejects after the deadline; whoever waits for the promise itself gets nothing more. */
  async within<T>(promise: Promise<T>, what: string, ms = this.#options.callTimeoutMs): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      // A loop that was blocked finds the timer due before it has read the answer that lies ready: it reads first.
      timer = setTimeout(() => setImmediate(() => reject(this.#lateError(what, ms))), ms);
      timer.unref();
    });
    try {
      return await Promise.race([promise, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** A connection that the caller gives back. */
  async connect(ms = this.#options.callTimeoutMs): Promise<PgClient> {
    if (this.#closed) throw this.#closedError();
    const connecting = this.#options.pool.connect();
    try {
      const client = await this.within(connecting, "a connection", ms);
      // A caller's pool may have connections from before it was given to the store.
      client.on("error", ignore);
      return client;
    } catch (error) {
      // It may still come, and then belongs to nobody.
      connecting.then((client) => client.release(true)).catch(ignore);
      throw translateError(error, this.place);
    }
  }

  release(client: PgClient, destroy: boolean): void {
    if (!destroy) client.removeListener("error", ignore);
    client.release(destroy);
  }

  /** Lets the calls that were made end, and refuses new ones. */
  async close(): Promise<void> {
    this.#closed = true;
    // A caller's function that hangs in a transaction does not end, and goes with its connection.
    await this.within(Promise.allSettled(this.#open), "the end of its calls").catch(ignore);
    if (this.#options.owned)
      await this.within(this.#options.pool.end(), "the end of its connections").catch(ignore);
  }

  async #runPatiently(statement: PgStatement): Promise<unknown> {
    const until = performance.now() + this.#options.callTimeoutMs;
    const leftMs = (): number => Math.max(1, Math.round(until - performance.now()));
    for (let tries = 1; ; tries += 1) {
      try {
        const use = async (client: PgClient): Promise<unknown> =>
          answerOf(await this.within(client.query(statement), "an answer", leftMs()));
        return await this.#borrow(use, spoilsConnection, () => false, leftMs());
      } catch (error) {
        if (!isConflict(error) || tries === maxTries) throw translateError(error, this.place);
      }
      await delay(Math.random() * maxPauseMs * tries);
    }
  }

  async #borrow<T>(
    use: (client: PgClient) => Promise<T>,
    spoils: (error: unknown) => boolean,
    isBroken: (value: T) => boolean,
    connectMs?: number,
  ): Promise<T> {
    const client = await this.connect(connectMs);
    try {
      const value = await use(client);
      this.release(client, isBroken(value));
      return value;
    } catch (error) {
      this.release(client, spoils(error));
      throw error;
    }
  }

  #tracked<T>(promise: Promise<T>): Promise<T> {
    this.#open.add(promise);
    const forget = (): void => void this.#open.delete(promise);
    promise.then(forget, forget);
    return promise;
  }

  #lateError(what: string, ms: number): EscapementError {
    return new EscapementError(
      "store-unavailable",
      `Postgres store ${this.place}: waited ${ms} ms in vain for ${what}; the call may or may not have been carried out, and it is safe to repeat it`,
    );
  }

  #closedError(): EscapementError {
    return new EscapementError("stopped", `Postgres store ${this.place} is closed; open it again to use it`);
  }
}

function ignore(): void {}

/** The JSON in the column `answer` of the first row. Read as text, so that no type parser of the caller's client matters. */
export function answerOf({ rows }: { readonly rows: readonly unknown[] }): unknown {
  const [row] = rows;
  if (typeof row !== "object" || row === null || !("answer" in row))
    throw new TypeError("the server gave no answer");
  return typeof row.answer === "string" ? JSON.parse(row.answer) : row.answer;
}
