import type { AnyDefinition } from "../definition.ts";
import type { EnqueueOptions, OpenTransaction, TransactionJobs } from "../enqueue.ts";
import { EscapementError } from "../errors.ts";
import { checkKnown } from "../options.ts";
import type { EnqueueReceipt } from "../receipt.ts";
import type { EnqueueWithin } from "../store/claims.ts";
import type { EnqueueResult, NewJob } from "../store/jobs.ts";
import { receive } from "./batcher.ts";
import { type Asked, readMany } from "./many.ts";

export interface TransactionJobsParts {
  /** Makes the jobs, or throws; a promise only if a schema is asynchronous. */
  make(asked: readonly Asked[]): NewJob[] | Promise<NewJob[]>;
  readonly write: EnqueueWithin;
  onEnqueued(receipt: EnqueueReceipt, target: AnyDefinition | string): void;
}

/**
 * Enqueues in the transaction of a handler's `tx`. Its caller need not await it, and on SQLite cannot: what it cannot enqueue fails the
 * transaction, even if the caller ignores the error, and the transaction waits for what is still being written.
 */
export class TransactionEnqueuer implements OpenTransaction {
  readonly #parts: TransactionJobsParts;
  readonly #failures: unknown[] = [];
  /** The last write in progress: a connection takes one statement at a time. */
  #tail: Promise<unknown> | null = null;
  #open = true;

  constructor(parts: TransactionJobsParts) {
    this.#parts = parts;
  }

  readonly jobs = {
    enqueue: (target: AnyDefinition | string, input?: unknown, options: EnqueueOptions = {}) =>
      this.#add(() => [{ target, input, options }], first),
    enqueueMany: (one: unknown, two?: unknown, three?: unknown) =>
      this.#add(
        () => askedOf(one, two, three),
        (receipts) => receipts,
      ),
  } as TransactionJobs;

  /** Calls the function of the transaction. Synchronous where both it and the store are. */
  run<T>(fn: () => T): T | Promise<Awaited<T>> {
    let value: T;
    try {
      value = fn();
    } catch (error) {
      this.#open = false;
      throw error;
    }
    if (value instanceof Promise || this.#tail !== null) return this.#conclude(value);
    this.#open = false;
    this.#throwFailure();
    return value;
  }

  async #conclude<T>(value: T): Promise<Awaited<T>> {
    try {
      const settled = await value;
      while (this.#tail !== null) await this.#tail;
      this.#throwFailure();
      return settled;
    } finally {
      this.#open = false;
    }
  }

  #throwFailure(): void {
    if (this.#failures.length > 0) throw this.#failures[0];
  }

  #add<R>(ask: () => readonly Asked[], shape: (receipts: EnqueueReceipt[]) => R): Promise<R> {
    if (!this.#open) {
      throw new EscapementError(
        "transaction-used",
        "the transaction is over; enqueue inside the function given to tx, and await there what you start",
      );
    }
    const added = this.#write(ask).then(shape);
    // A caller that ignores it still learns of it, from the transaction.
    added.catch(() => {});
    return added;
  }

  #write(ask: () => readonly Asked[]): Promise<EnqueueReceipt[]> {
    const fail = (error: unknown): Promise<never> => {
      this.#failures.push(error);
      return Promise.reject(error);
    };
    try {
      const asked = ask();
      const made = this.#parts.make(asked);
      // Handed over at once where that can be: on SQLite the transaction is over when its function returns.
      const results =
        made instanceof Promise || this.#tail !== null ? this.#after(() => made) : this.#parts.write(made);
      if (!(results instanceof Promise)) return Promise.resolve(this.#receive(asked, results));
      const receipts = results.then((settled) => this.#receive(asked, settled)).catch(fail);
      const tail = receipts.then(
        () => {},
        () => {},
      );
      const done = tail.then(() => {
        if (this.#tail === done) this.#tail = null;
      });
      this.#tail = done;
      return receipts;
    } catch (error) {
      return fail(error);
    }
  }

  async #after(made: () => NewJob[] | Promise<NewJob[]>): Promise<EnqueueResult[]> {
    const before = this.#tail;
    const jobs = await made();
    await before;
    return this.#parts.write(jobs);
  }

  #receive(asked: readonly Asked[], results: readonly EnqueueResult[]): EnqueueReceipt[] {
    const receipts = results.map(receive);
    for (const [index, receipt] of receipts.entries()) {
      this.#parts.onEnqueued(receipt, asked[index]?.target ?? "");
    }
    return receipts;
  }
}

function askedOf(one: unknown, two: unknown, three: unknown): readonly Asked[] {
  const { asked, options } = readMany(one, two, three);
  checkKnown(options as object, [], "enqueueMany inside tx");
  return asked;
}

function first(receipts: EnqueueReceipt[]): EnqueueReceipt {
  return receipts[0] as EnqueueReceipt;
}
