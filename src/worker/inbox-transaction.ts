import { type Clock, sleep } from "../clock.ts";
import { noJobs, type TransactionJobs } from "../enqueue.ts";
import { EscapementError } from "../errors.ts";
import type { HandlerContext } from "../handler.ts";
import type { EffectInbox } from "../store/inbox.ts";

const longestWaitMs = 1_000;

const outside = noJobs(
  "this tx is the inbox's, and the jobs are in another store; enqueue after it, with an id made of the job's own",
);

/**
 * The handler's `tx` where the store has no transactions: the effect commits with the inbox's marker under the job's
 * idempotency key. A job that is dispatched again after its effect was committed finds the key done, gets undefined,
 * and may simply return.
 */
export function inboxTransaction(
  inbox: EffectInbox,
  idempotencyKey: string,
  { clock, signal }: { readonly clock: Clock; signal(): AbortSignal },
): HandlerContext<unknown>["tx"] {
  return async <T, Db>(fn: (db: Db, jobs: TransactionJobs) => T): Promise<Awaited<T>> => {
    for (;;) {
      const handled = await inbox.handle<T, Db>({ key: idempotencyKey }, (db) => fn(db, outside));
      if (handled.outcome === "handled") return handled.value;
      if (handled.outcome === "duplicate") return undefined as Awaited<T>;
      // An earlier dispatch died in here, and its key is free only when its lease is over: that is not a failure of this
      // one.
      await sleep(clock, Math.min(handled.retryInMs + 1, longestWaitMs), signal());
      if (!signal().aborted) continue;
      throw new EscapementError(
        "store-busy",
        `an earlier dispatch of this job may still be at work in the inbox, for at most ${handled.retryInMs} ms; it will be retried`,
      );
    }
  };
}
