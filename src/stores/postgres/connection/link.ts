import { setTimeout as delay } from "node:timers/promises";
import { EscapementError } from "../../../errors.ts";
import { isConflict, spoilsConnection, translateError } from "../errors.ts";
import type { PgClient, PgPool, PgStatement } from "./client.ts";

export type Value = string | number | boolean | null;

/**
 * Runs one statement whose only column, `answer`, is JSON, and returns the parsed value.
 *
 * @param often whether the same SQL runs again and again, so the server should keep it prepared if it can.
 */
export type RunStatement = (sql: string, values: readonly Value[], often?: boolean) => Promise<unknown>;

export interface LinkOptions {
  readonly pool: PgPool;
  /** Whether the store owns the pool and must end it. */
  readonly owned: boolean;
  readonly callTimeoutMs: number;
  /** For messages: where the server is, without a password. */
  readonly place: string;
}

/** How many prepared statements each connection keeps. There are a handful, and a few more for unusual batches. */
const maxPrepared = 50;
/** How often a call that conflicts with another one is tried. */
const maxAttempts = 8;
const maxPauseMs = 30;

/** The connection to the server: every call has a deadline, and a connection that misses it is discarded. */
export class Link {
  readonly #options: LinkOptions;
  readonly #open = new Set<Promise<unknown>>();
  /** By their SQL. */
  readonly #names = new Map<string, string>();
  #prepares = false;
  #closed = false;

  constructor(options: LinkOptions) {
    this.#options = options;
    // A broken connection is replaced when it is needed; without these listeners it would crash the process. A new one gets its
    // listener before anything else sees it: its first answer and its end may come in the same packet.
    options.pool.on("error", ignore);
    options.pool.on("connect", (client) => client.on("error", () => {}));
  }

  get place(): string {
    return this.#options.place;
  }

  /** From now on, frequent statements are prepared: each connection leads to one session of the server. */
  prepareOften(): void {
    this.#prepares = this.#options.owned;
  }

  readonly run: RunStatement = (sql, values, often = false) => {
    const statement = often ? this.#named(sql, values) : { text: sql, values };
    const use = async (client: PgClient, ms: number) => ({
      value: await this.#ask(client, statement, ms),
      isBroken: false,
    });
    return this.#tracked(this.#patiently(use).then(({ value }) => value));
  };

  /** Whether a second statement can be sent behind one: on the store's own connections, which lead to one session of the server. */
  get canFollow(): boolean {
    return this.#prepares;
  }

  /**
   * Runs a statement, and another one behind it on the same connection; it is sent before the first is answered where the client can do that. Only
   * the first is waited for.
   */
  runWith(
    first: PgStatement,
    second: PgStatement,
    onSecondFailed: (error: unknown) => void,
  ): Promise<unknown> {
    const statement = this.#named(first.text, first.values);
    const behind = this.#named(second.text, second.values);
    const answered = Promise.withResolvers<unknown>();
    const both = this.#patiently(async (client, ms) => {
      if (client.pipeline === false) client.pipeline = true;
      const answer = this.#ask(client, statement, ms);
      answer.then(answered.resolve, ignore);
      const isBroken = await this.#ask(client, behind, ms).then(
        () => false,
        (error: unknown) => {
          onSecondFailed(error);
          return true;
        },
      );
      if (client.pipeline === true) client.pipeline = false;
      return { value: await answer, isBroken };
    });
    both.catch(answered.reject);
    void this.#tracked(both);
    return answered.promise;
  }

  #named(text: string, values: PgStatement["values"]): PgStatement {
    const known = this.#names.get(text);
    if (known !== undefined) return { name: known, text, values };
    if (!this.#prepares || this.#names.size >= maxPrepared) return { text, values };
    const name = `escapement_${this.#names.size}`;
    this.#names.set(text, name);
    return { name, text, values };
  }

  /**
   * Lends the function a connection. It is put back when the function resolves, and discarded when it rejects, or when the
   * result says that the connection is unusable.
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

  /** Rejects after the deadline; a later result of the promise is ignored. */
  async within<T>(promise: Promise<T>, what: string, ms = this.#options.callTimeoutMs): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      // After a blocked event loop, the timer is due before a waiting answer has been read: read first.
      timer = setTimeout(() => setImmediate(() => reject(this.#lateError(what, ms))), ms);
      timer.unref();
    });
    try {
      return await Promise.race([promise, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** A connection that the caller must release. */
  async connect(ms = this.#options.callTimeoutMs): Promise<PgClient> {
    if (this.#closed) throw this.#closedError();
    const connecting = this.#options.pool.connect();
    try {
      const client = await this.within(connecting, "a connection", ms);
      // A caller's pool may hold connections from before it was passed to the store.
      client.on("error", ignore);
      return client;
    } catch (error) {
      // If the connection still arrives, no caller is waiting for it.
      connecting.then((client) => client.release(true)).catch(ignore);
      throw translateError(error, this.place);
    }
  }

  release(client: PgClient, destroy: boolean): void {
    if (!destroy) client.removeListener("error", ignore);
    client.release(destroy);
  }

  /** Waits for the calls in progress, and refuses new ones. */
  async close(): Promise<void> {
    this.#closed = true;
    // A caller's function that hangs in a transaction never ends; it is dropped with its connection.
    await this.within(Promise.allSettled(this.#open), "the end of its calls").catch(ignore);
    if (this.#options.owned)
      await this.within(this.#options.pool.end(), "the end of its connections").catch(ignore);
  }

  async #ask(client: PgClient, statement: PgStatement, ms: number): Promise<unknown> {
    return answerOf(await this.within(client.query(statement), "an answer", ms));
  }

  /** @param use what to do with a connection, and how long that may take; it is done again where it stood in another's way. */
  async #patiently(use: (client: PgClient, ms: number) => Promise<Used>): Promise<Used> {
    const until = performance.now() + this.#options.callTimeoutMs;
    const leftMs = (): number => Math.max(1, Math.round(until - performance.now()));
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#borrow(
          (client) => use(client, leftMs()),
          spoilsConnection,
          ({ isBroken }) => isBroken,
          leftMs(),
        );
      } catch (error) {
        if (!isConflict(error) || attempt === maxAttempts) throw translateError(error, this.place);
      }
      await delay(Math.random() * maxPauseMs * attempt);
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
      `Postgres store ${this.place}: no answer within ${ms} ms (${what}); the call may or may not have been carried out, and it is safe to repeat it`,
    );
  }

  #closedError(): EscapementError {
    return new EscapementError("stopped", `Postgres store ${this.place} is closed; open it again to use it`);
  }
}

/** What came of a connection's use, and whether it is of no more use after that. */
interface Used {
  readonly value: unknown;
  readonly isBroken: boolean;
}

function ignore(): void {}

/** The JSON in the column `answer` of the first row. Read as a string, so the caller's type parsers do not matter. */
export function answerOf({ rows }: { readonly rows: readonly unknown[] }): unknown {
  const [row] = rows;
  if (typeof row !== "object" || row === null || !("answer" in row))
    throw new TypeError("the server gave no answer");
  return typeof row.answer === "string" ? JSON.parse(row.answer) : row.answer;
}
