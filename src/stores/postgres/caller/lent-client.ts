import { EscapementError, isCausedBy } from "../../../errors.ts";
import type { PgClient } from "../connection/client.ts";
import { isPassing, translateError } from "../errors.ts";

type Call = (...values: unknown[]) => unknown;

/** A connection as a caller's function gets it: usable until the transaction ends, and released only by the store. */
export class LentClient {
  readonly client: object;
  /** An error of this connection that is the fault of neither the statements nor the caller. */
  readonly #failures = new Set<unknown>();
  #open = true;

  constructor(client: PgClient) {
    this.client = new Proxy(client, {
      get: (target, name) => {
        if (name === "release" || name === "end") return () => {};
        const found: unknown = Reflect.get(target, name);
        if (typeof found !== "function") return found;
        return (...values: unknown[]) => {
          this.#assertOpen();
          return name === "query"
            ? this.#query(target, found as Call, values)
            : Reflect.apply(found, target, values);
        };
      },
    });
  }

  close(): void {
    this.#open = false;
  }

  /** The error to report for a transaction that ended with this one: the failure of the connection or the server, if that caused it. */
  explain(error: unknown, place: string): unknown {
    if (!isCausedBy(error, (one) => this.#failures.has(one))) return error;
    return failed(error, place);
  }

  /** The failure that broke the transaction, even if the caller's function swallowed it. */
  get failure(): unknown {
    const [first = null] = this.#failures;
    return first;
  }

  #query(target: PgClient, query: Call, values: unknown[]): unknown {
    const callback = values.at(-1);
    if (typeof callback === "function") {
      const watched = (error: unknown, ...rest: unknown[]): unknown => {
        this.#note(error);
        return Reflect.apply(callback, undefined, [error, ...rest]);
      };
      return Reflect.apply(query, target, [...values.slice(0, -1), watched]);
    }
    const answer: unknown = Reflect.apply(query, target, values);
    if (answer instanceof Promise) answer.catch((error: unknown) => this.#note(error));
    return answer;
  }

  #note(error: unknown): void {
    if (isPassing(error)) this.#failures.add(error);
  }

  #assertOpen(): void {
    if (this.#open) return;
    throw new EscapementError(
      "transaction-used",
      "the transaction is over; use its handle only inside the function that received it",
    );
  }
}

/** A store failure that the caller's function received, and may have wrapped. */
export function failed(error: unknown, place: string): unknown {
  const translated = translateError(error, place);
  if (translated !== error) return translated;
  const message = error instanceof Error ? error.message : String(error);
  return new EscapementError(
    "store-unavailable",
    `Postgres store ${place}: the transaction was cut off: ${message}`,
    { cause: error },
  );
}
