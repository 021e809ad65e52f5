import { AsyncLocalStorage } from "node:async_hooks";
import { sleepAwake } from "../clock.ts";
import type { EnqueueVerbs, JobsForHandlers, TransactionJobs } from "../enqueue.ts";
import { EscapementError, isCausedBy, isTransient } from "../errors.ts";
import type { HandlerContext } from "../handler.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { reconnectDelayMs, withRetries } from "../runtime/transient.ts";
import type { Success } from "../state.ts";
import type { EnqueueWithin, Report, TransactResult } from "../store/claims.ts";
import type { Store } from "../store/store.ts";
import type { Held } from "./held.ts";
import { succeedWith } from "./outcome.ts";
import type { Reporter } from "./reporter.ts";

export interface JobTransactionParts {
  readonly claimer: string;
  readonly store: Store;
  readonly runtime: Runtime;
  readonly reporter: Reporter;
  readonly jobs: JobsForHandlers;
  readonly maxResultBytes: number;
}

/** The transaction whose function the code runs in; code that merely runs at the same time is not in it. */
const inside = new AsyncLocalStorage<{ readonly of: JobTransaction; readonly jobs: TransactionJobs }>();

type Tx = HandlerContext<unknown>["tx"];

/** How long a transaction that could not begin is retried. */
const beginMs = 10_000;

/** The handler's `tx`: its writes and the job's success commit together, once. */
export class JobTransaction {
  readonly #held: Held;
  readonly #parts: JobTransactionParts;
  /** What `tx` threw because the store failed. */
  readonly #breaks = new Set<unknown>();
  /** What the commit is to write. */
  #reported: Report | null = null;
  #used = false;
  committed = false;
  value: unknown = null;
  success: Success | null = null;

  constructor(held: Held, parts: JobTransactionParts) {
    this.#held = held;
    this.#parts = parts;
  }

  /**
   * Whether a handler failed because the store failed under its `tx`: that is not the handler's failure. It may have
   * wrapped the error.
   */
  isBrokenBy(error: unknown): boolean {
    return this.#breaks.size > 0 && isCausedBy(error, (one) => this.#breaks.has(one));
  }

  /** The handler's own verb: inside the function of its `tx` it joins the transaction. */
  joined<V extends keyof EnqueueVerbs>(jobs: EnqueueVerbs, verb: V): EnqueueVerbs[V] {
    const call = (...values: never[]): unknown => {
      const open = inside.getStore();
      const target: EnqueueVerbs | TransactionJobs = open?.of === this ? open.jobs : jobs;
      return (target[verb] as (...values: never[]) => unknown)(...values);
    };
    return call as EnqueueVerbs[V];
  }

  readonly run = async <T, Db>(fn: TxFunction<T, Db>): Promise<Awaited<T>> => {
    const { id } = this.#held.job;
    if (this.#used) {
      throw new EscapementError(
        "transaction-used",
        `job ${JSON.stringify(id)} has already called tx; it commits with the job's success, so there can be only one`,
      );
    }
    this.#used = true;
    this.#held.transaction = "open";
    const { reporter } = this.#parts;
    if (!reporter.isWritten(this.#held)) await reporter.flush();
    await reporter.withhold(this.#held);
    const answer = await this.#transact(fn).catch((error: unknown) => {
      this.#used = false;
      this.#held.transaction = "none";
      this.#giveReportsBack();
      throw error;
    });
    if (answer.outcome === "stale") {
      this.#held.transaction = "none";
      this.#giveReportsBack();
      throw new EscapementError(
        "stale-claim",
        `job ${JSON.stringify(id)} is no longer this handler's: everything was rolled back`,
      );
    }
    this.committed = true;
    this.#held.transaction = "committed";
    reporter.release(this.#held);
    this.value = answer.value;
    return answer.value;
  };

  /** Nothing was committed: what was to be written with it is sent like any other report. */
  #giveReportsBack(): void {
    const { reporter } = this.#parts;
    if (this.#reported !== null) reporter.putBack(this.#held, this.#reported);
    this.#reported = null;
    reporter.release(this.#held);
  }

  /** The same watch over a `tx` that commits elsewhere, in an inbox. */
  readonly watch = (tx: Tx): Tx => {
    return async <T, Db>(fn: TxFunction<T, Db>): Promise<Awaited<T>> => {
      const call = new Call(fn);
      try {
        return await tx(call.run);
      } catch (error) {
        if (call.isNotToBlame(error)) this.#breaks.add(error);
        throw error;
      }
    };
  };

  async #transact<T, Db>(fn: TxFunction<T, Db>): Promise<TransactResult<Awaited<T>>> {
    const { store, claimer, maxResultBytes, runtime } = this.#parts;
    const { id, token } = this.#held.job;
    const giveUpAtMs = runtime.clock.monotonic() + beginMs;
    for (let attempt = 1; ; attempt += 1) {
      const call = new Call<T, Db>(fn);
      try {
        return await store.transact<Awaited<T>>({
          claimer,
          id,
          token,
          run: (db, enqueue) => this.#call(call, db as Db, enqueue),
          encode: (value) => {
            call.returned = { value };
            this.success = succeedWith(value, maxResultBytes);
            return this.success;
          },
          report: () => {
            this.#reported = this.#parts.reporter.take(this.#held);
            return this.#reported;
          },
        });
      } catch (error) {
        if (!call.isNotToBlame(error)) throw error;
        // Nothing has run, so it may begin again: a connection that lay idle was dead, or another process is writing.
        const isOver = runtime.clock.monotonic() >= giveUpAtMs || this.#held.stopCause !== null;
        if (!call.started && !isOver) {
          await sleepAwake(runtime.clock, reconnectDelayMs(attempt, runtime.random()));
          continue;
        }
        if (call.returned !== null && (await this.#hasCommitted()))
          return { outcome: "committed", value: call.returned.value };
        this.#breaks.add(error);
        throw error;
      }
    }
  }

  #call<T, Db>(call: Call<T, Db>, db: Db, enqueue: EnqueueWithin): Awaited<T> | Promise<Awaited<T>> {
    const open = this.#parts.jobs.within(enqueue);
    // A slow function may be watched while it runs.
    this.#giveReportsBack();
    return inside.run({ of: this, jobs: open.jobs }, () =>
      open.run(() => this.#withhold(call.run(db, open.jobs))),
    ) as Awaited<T> | Promise<Awaited<T>>;
  }

  /** What the function has reported is written by the commit that ends the job. */
  #withhold<T>(value: T): T | Promise<Awaited<T>> {
    const { reporter } = this.#parts;
    if (!(value instanceof Promise)) {
      void reporter.withhold(this.#held);
      return value;
    }
    return value.then(async (returned) => {
      await reporter.withhold(this.#held);
      return returned;
    });
  }

  /**
   * Called when the answer to a commit is missing. If that stays unknown, the next outcome written finds out.
   */
  async #hasCommitted(): Promise<boolean> {
    const { store, claimer, runtime } = this.#parts;
    const { id, token } = this.#held.job;
    try {
      const [job] = await withRetries(runtime, () => store.get({ ids: [id] }));
      return job?.state === "succeeded" && job.token === token && job.claimer === claimer;
    } catch {
      return false;
    }
  }
}

type TxFunction<T, Db> = (db: Db, jobs: TransactionJobs) => T;

/** One call of the caller's function, and how far it got. */
class Call<T, Db> {
  readonly #fn: TxFunction<T, Db>;
  started = false;
  returned: { readonly value: Awaited<T> } | null = null;
  #threw: { readonly error: unknown } | null = null;

  constructor(fn: TxFunction<T, Db>) {
    this.#fn = fn;
  }

  readonly run = (db: Db, jobs: TransactionJobs): T => {
    this.started = true;
    const note = (error: unknown): void => {
      this.#threw = { error };
    };
    try {
      const value = this.#fn(db, jobs);
      if (value instanceof Promise) value.catch(note);
      return value;
    } catch (error) {
      note(error);
      throw error;
    }
  };

  /** Whether it is the store that failed: what the function itself threw comes out of the store as it is. */
  isNotToBlame(error: unknown): boolean {
    return isTransient(error) && this.#threw?.error !== error;
  }
}
