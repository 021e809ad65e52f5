import { type Duration, parseDuration } from "./duration.ts";
import type { HandlerJobs, TransactionJobs } from "./enqueue.ts";
import type { JobFacts } from "./job.ts";
import type { TraceContext } from "./telemetry/trace.ts";

/** What a handler knows about its job. */
export interface HandlerJob extends JobFacts {
  /** The same for every attempt: pass it to any API that can refuse a second effect under one key. */
  readonly idempotencyKey: string;
  /** Its place in the trace of the caller that enqueued it. Left out if it is in none. */
  readonly trace?: TraceContext;
}

/**
 * What a handler is given.
 *
 * Jobs that it enqueues exist at once and stay even if it fails afterwards; give them an id made of `job.id`, and the next attempt finds them.
 * Those that it enqueues inside `tx` come and go with it.
 */
export interface HandlerContext<Input> extends HandlerJobs {
  readonly input: Input;
  readonly job: HandlerJob;
  /** Fires when the job is cancelled, times out, loses its lease, or the process must stop; `signal.reason` is a {@link StopReason}. */
  readonly signal: AbortSignal;
  /**
   * Runs `fn` in a transaction of the store's database and commits its writes together with the job's success; its result becomes the
   * job's result. When the claim is no longer this handler's, everything is rolled back and it throws `stale-claim`. On SQLite `fn` is synchronous.
   *
   * Inside `fn`, `enqueue` and `enqueueMany` join the transaction: the jobs exist if and when it commits. They need not be awaited there, and what
   * cannot be enqueued fails the transaction. The second argument of `fn` has the same two.
   *
   * @example
   * await tx(async (db) => {
   *   await db.query("insert into invoices …");
   *   await enqueue(mail, { invoice });
   * });
   */
  tx<T, Db = unknown>(fn: (db: Db, jobs: TransactionJobs) => T): Promise<Awaited<T>>;
  /** Adds a line to the job's trail. */
  log(line: string): void;
  /** Tells how far it is, in any JSON value; the latest one is kept. */
  progress(value: unknown): void;
}

export type StopCause = "cancelled" | "timeout" | "lease-lost" | "shutdown";

/** Why a handler's signal fired. */
export class StopReason extends Error {
  override readonly name: string = "StopReason";
  override readonly cause: StopCause;

  constructor(cause: StopCause, message: string) {
    super(message);
    this.cause = cause;
  }
}

/** What {@link snooze} returns. */
export class Snooze {
  readonly delayMs: number;

  constructor(delayMs: number) {
    this.delayMs = delayMs;
  }
}

/**
 * Returned by a handler that wants to be called later; it does not use up an attempt. An at-most-once job cannot be snoozed: it is dead.
 *
 * @example
 * if (!(await ready())) return snooze("5m");
 */
export function snooze(delay: Duration): Snooze {
  return new Snooze(parseDuration(delay, "the delay of snooze"));
}
