import { EscapementError, isCausedBy } from "../../errors.ts";
import type { Success } from "../../state.ts";
import type { Report, TransactParams, TransactResult } from "../../store/claims.ts";
import { explainCheck, guard } from "./connection/guard.ts";
import type { Link } from "./connection/link.ts";
import { type Sql, sql } from "./connection/sql.ts";
import { settleClaim, tellChildren } from "./end.ts";
import { isLost, isMissingTable, isPassing, translateError } from "./errors.ts";
import { isHeldBy } from "./finish.ts";
import { lockJobs } from "./jobs/find.ts";
import { writeReport } from "./leases.ts";
import { numberOf, numberOrNull } from "./rows.ts";
import type { Session } from "./session.ts";

/** The parameters of `transact`, once its function has a way to enqueue. */
export type BoundParams<T> = Omit<TransactParams<T>, "run"> & {
  readonly run: (tx: unknown) => T | Promise<T>;
};

/** One of the store's own transactions while a caller's function uses it. */
export class OpenTransaction {
  readonly session: Session;
  /** What the function receives: the connection, for as long as the transaction lasts. */
  readonly handle: object;
  readonly #enqueues: Promise<unknown>[] = [];
  /** An error of this connection that is the fault of neither the statements nor the caller. */
  readonly #failures = new Set<unknown>();
  #open = true;
  #tail: Promise<unknown> = Promise.resolve();

  constructor(session: Session, connection: object) {
    this.session = session;
    this.handle = new Proxy(connection, {
      get: (target, key) => {
        this.assertOpen();
        const value: unknown = Reflect.get(target, key, target);
        if (typeof value !== "function") return value;
        return (...values: unknown[]): unknown => {
          const answer: unknown = Reflect.apply(value, target, values);
          if (answer instanceof Promise) answer.catch(this.#note);
          return answer;
        };
      },
    });
  }

  /** The error to report for a transaction that ended with this one: the failure of the connection or the server, if that caused it. */
  explain(error: unknown, where: string): unknown {
    return isCausedBy(error, (one) => this.#failures.has(one)) ? brokenOff(error, where) : error;
  }

  /** The same for a function that swallowed such a failure, and continued in a transaction that was over. */
  explainCheck(error: unknown, where: string): unknown {
    const [failure] = this.#failures;
    const explained = explainCheck(error);
    return explained === error || failure === undefined ? explained : brokenOff(failure, where);
  }

  readonly #note = (error: unknown): void => {
    if (isPassing(error)) this.#failures.add(error);
  };

  /** Runs the transaction's statements one at a time; its end waits for them, even if the caller does not. */
  run<T>(work: () => Promise<T>): Promise<T> {
    this.assertOpen();
    const result = this.#tail.then(work);
    this.#tail = result.catch(this.#note);
    this.#enqueues.push(result);
    return result;
  }

  /** Fails if any part of the transaction has failed. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#enqueues);
    await Promise.all(this.#enqueues);
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#enqueues);
    this.#open = false;
  }

  assertOpen(): void {
    if (this.#open) return;
    throw new EscapementError(
      "transaction-used",
      "the transaction is over; use its handle only inside the function that received it",
    );
  }
}

/** The transactions that callers' functions are using, by the handle they received. */
export const openTransactions = new WeakMap<object, OpenTransaction>();

/** What the caller's function threw: it passes through the store unchanged, and rolls the transaction back. */
export class CallerError extends Error {
  override readonly name = "CallerError";
}

function brokenOff(error: unknown, where: string): EscapementError {
  const translated = translateError(error, where);
  if (translated !== error && translated instanceof EscapementError) return translated;
  const message = error instanceof Error ? error.message : String(error);
  return new EscapementError(
    "store-unavailable",
    `MySQL store ${where}: the transaction was cut off: ${message}`,
    { cause: error },
  );
}

/** Thrown to roll back the transaction of a claim that no longer belongs to the claimer. */
export class StaleClaim extends Error {
  override readonly name = "StaleClaim";
}

interface TransactOn {
  readonly connection: object;
  /** Called when the caller's function is done and the store's own locks are about to be taken. */
  ending(): void;
  /** For messages. */
  readonly where: string;
}

/**
 * Runs the caller's writes and the job's success in the open transaction, whose commit is the last thing sent.
 *
 * @param enqueuing for jobs that the caller's function enqueues; it may take long, and must not block others.
 */
export async function transact<T>(
  session: Session,
  enqueuing: Session,
  params: BoundParams<T>,
  { connection, ending, where }: TransactOn,
): Promise<TransactResult<T>> {
  await assertHeld(session, params);
  const transaction = new OpenTransaction(enqueuing, connection);
  openTransactions.set(transaction.handle, transaction);
  try {
    const value = await runCaller(params, transaction, where);
    await transaction.settled();
    const outcome = params.encode(value);
    const reported = params.report?.() ?? null;
    ending();
    await succeed(session, params, { outcome, reported }, (error) => transaction.explainCheck(error, where));
    return { outcome: "committed", value };
  } finally {
    await transaction.close();
  }
}

async function runCaller<T>(
  { run }: BoundParams<T>,
  transaction: OpenTransaction,
  where: string,
): Promise<T> {
  try {
    return await run(transaction.handle);
  } catch (error) {
    throw new CallerError("the function given to tx threw", { cause: transaction.explain(error, where) });
  }
}

/** Reads without locking: the caller's function may take long, and others may want to renew or cancel the job in the meantime. */
async function assertHeld({ link, ns, claimers }: Session, claim: Claim): Promise<void> {
  const { rows } = await link.query(
    sql`select get_lock(${lockName(ns, claim.id)}, 0) from escapement_jobs where ns = ${ns} and id = ${claim.id}
      and state = 'active' and token = ${claim.token} and claimer = ${claimers.of(claim.claimer)} and relayed = 0`,
  );
  if (rows[0] === undefined) throw new StaleClaim("the claim ended before its transaction");
  if (numberOf(rows[0][0]) !== 1) await evict(link, ns, claim.id);
}

/** Names are the whole server's, and at most 64 characters long. MySQL 9.7 has no SHA1. */
function lockName(ns: number, id: string): Sql {
  return sql`sha2(concat(database(), '.escapement_jobs.', ${ns}, '.', ${id}), 224)`;
}

/** What follows the end of the transaction, whatever that is. */
export function unlock(ns: number, id: string): Sql {
  return sql`do release_lock(${lockName(ns, id)})`;
}

/** How long the server has to roll back what the other one wrote. */
const evictSeconds = 5;

/**
 * A transaction still open for the same job belongs to a process that lost the claim or dropped the connection. It can no longer succeed,
 * and its locks would block this one for as long as its connection lasts: the server ends it. A user without that right leaves it alone.
 */
async function evict(link: Link, ns: number, id: string): Promise<void> {
  const { rows } = await link.query(sql`select is_used_lock(${lockName(ns, id)})`);
  const holder = numberOrNull(rows[0]?.[0] ?? null);
  try {
    if (holder !== null) await link.query(sql`kill ${holder}`);
    await link.query(sql`select get_lock(${lockName(ns, id)}, ${evictSeconds})`);
  } catch (error) {
    if (isLost(error)) throw error;
  }
}

interface Claim {
  readonly claimer: string;
  readonly id: string;
  readonly token: number;
}

async function succeed(
  session: Session,
  claim: Claim,
  { outcome, reported }: { readonly outcome: Success; readonly reported: Report | null },
  explain: (error: unknown) => unknown,
): Promise<void> {
  const { link, claimers } = session;
  const [, jobs] = await Promise.all([
    link.query(guard.check),
    lockJobs(session, [claim.id]),
    session.lines.refresh(link),
  ]).catch((error: unknown) => {
    throw explain(error);
  });
  const job = jobs.get(claim.id);
  if (job === undefined || job.relayed || !isHeldBy(job, claimers.of(claim.claimer), claim.token)) {
    throw new StaleClaim("the claim ended inside its own transaction");
  }
  if (reported !== null) writeReport(session, job, reported);
  const { state } = settleClaim(session, job, outcome, true);
  await tellChildren(session, [{ seq: job.seq, id: job.id, state }]);
}

/** A caller's connection may lead to another server or database; jobs written there would never be found. */
export async function assertSameDatabase(link: Link, ns: number, namespace: string): Promise<void> {
  const { rows } = await link
    .query(sql`select ns from escapement_namespaces where name = ${namespace}`)
    .catch((error: unknown) => {
      if (isMissingTable(error)) return { rows: [] };
      throw error;
    });
  if (rows[0] !== undefined && numberOf(rows[0][0]) === ns) return;
  throw new EscapementError(
    "transaction-unavailable",
    "expected tx to be a connection to the store's own database, got one without its tables",
  );
}
