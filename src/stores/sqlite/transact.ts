import { EscapementError } from "../../errors.ts";
import type { TransactParams, TransactResult } from "../../store/claims.ts";
import { DatabaseSync } from "./connection/node-sqlite.ts";
import { enqueue } from "./enqueue.ts";
import { finish, isHeldBy } from "./finish.ts";
import { findJob } from "./jobs/find.ts";
import { report } from "./leases.ts";
import type { Session } from "./session.ts";

/** What the caller's function threw: it passes through the store unchanged, and rolls the transaction back. */
export class CallerError extends Error {
  override readonly name = "CallerError";
}

/** Thrown to roll back the transaction of a claim that no longer belongs to the claimer. */
class StaleClaim extends Error {
  override readonly name = "StaleClaim";
}

/** Runs the caller's writes and the job's success in the open transaction. */
export function transact<T>(session: Session, params: TransactParams<T>): TransactResult<T> {
  const { claimer, id, token } = params;
  const job = findJob(session, id);
  if (job === null || job.relayed || !isHeldBy(job, claimer, token)) return { outcome: "stale" };
  const value = runCaller(session.connection.database, (database) =>
    params.run(database, (jobs) => enqueue(session, jobs)),
  );
  const outcome = params.encode(value);
  const reported = params.report?.() ?? null;
  if (reported !== null) report(session, { claimer, reports: [{ id, token, ...reported }] });
  const [result] = finish(session, { claimer, finishes: [{ id, token, outcome }] });
  if (result?.outcome !== "written") throw new StaleClaim("the claim ended inside its own transaction");
  return { outcome: "committed", value };
}

/** Calls the caller's function inside the open transaction; what it throws is wrapped in a {@link CallerError}. */
export function runCaller<T>(database: DatabaseSync, run: (tx: unknown) => T | Promise<T>): T {
  const value = attempt(() => run(database));
  if (isThenable(value)) {
    // No one awaits it any more, so its failure would be reported as unhandled.
    if (value instanceof Promise) value.catch(() => {});
    throw new EscapementError(
      "transaction-unavailable",
      "expected the function given to tx to be synchronous on SQLite, got one that returns a promise; its writes were " +
        "rolled back. Do what must be awaited before or after tx, so the one write lock is not held in the meantime",
    );
  }
  if (!database.isTransaction) {
    throw new EscapementError(
      "transaction-used",
      "the function given to tx ended the transaction itself; leave commit and rollback to the store",
    );
  }
  return value;
}

/** A promise, or a query builder that runs when awaited, which would be after the commit. */
function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

function attempt<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw new CallerError("the function given to tx threw", { cause: error });
  }
}

/** The result of a transaction, with the caller's own error as it was thrown. */
export async function unwrapCaller<T>(result: Promise<TransactResult<T>>): Promise<TransactResult<T>> {
  try {
    return await result;
  } catch (error) {
    if (error instanceof StaleClaim) return { outcome: "stale" };
    throw error instanceof CallerError ? error.cause : error;
  }
}

/** The caller's own database handle, if jobs can be written through it. */
export function callersDatabase(tx: unknown, own: DatabaseSync): DatabaseSync {
  const refuse = (what: string): never => {
    throw new EscapementError(
      "transaction-unavailable",
      `expected tx to be a DatabaseSync of node:sqlite with an open transaction on the store's own file, got ${what}`,
    );
  };
  if (!(tx instanceof DatabaseSync)) return refuse(tx === null ? "null" : typeof tx);
  if (!tx.isOpen) return refuse("one that is closed");
  if (!tx.isTransaction) return refuse("one without a transaction; run BEGIN on it first");
  if (tx !== own && (tx.location() === null || tx.location() !== own.location())) {
    return refuse(`one of ${tx.location() ?? "a database in memory"}`);
  }
  return tx;
}

const maxPauseMs = 500;

/** Calls back when the caller's transaction is over. Nothing signals that, so it polls, less and less often. */
export function whenEnded(database: DatabaseSync, callback: () => void, pauseMs = 0): void {
  const timer = setTimeout(() => {
    if (database.isOpen && database.isTransaction) {
      whenEnded(database, callback, Math.min(maxPauseMs, pauseMs * 2 + 1));
    } else {
      callback();
    }
  }, pauseMs);
  timer.unref();
}
