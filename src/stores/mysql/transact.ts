import { EscapementError } from "../../errors.ts";
import type { TransactParams, TransactResult } from "../../store.ts";
import { settleClaim, tellChildren } from "./end.ts";
import { isMissingTable } from "./errors.ts";
import { isHeldBy } from "./finish.ts";
import { explainCheck, guard } from "./guard.ts";
import { lockJobs } from "./jobs.ts";
import type { Link } from "./link.ts";
import { numberOf } from "./rows.ts";
import type { Session } from "./session.ts";
import { sql } from "./sql.ts";

/** A transaction of the store's own that a caller's function has in its hands. */
export class OpenTransaction {
  readonly session: Session;
  /** What the function is given: the connection, for as long as the transaction lasts. */
  readonly handle: object;
  readonly #enqueues: Promise<unknown>[] = [];
  #open = true;
  #tail: Promise<unknown> = Promise.resolve();

  constructor(session: Session, connection: object) {
    this.session = session;
    this.handle = new Proxy(connection, {
      get: (target, key) => {
        this.assertOpen();
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }

  /** Runs what belongs to the transaction, one after the other; its end waits for it, also where the caller does not. */
  run<T>(work: () => Promise<T>): Promise<T> {
    this.assertOpen();
    const result = this.#tail.then(work);
    this.#tail = result.catch(() => {});
    this.#enqueues.push(result);
    return result;
  }

  /** Fails where something that belongs to the transaction has failed. */
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

/** The transactions that callers' functions have in their hands, by the handle they were given. */
export const openTransactions = new WeakMap<object, OpenTransaction>();

/** Thrown to undo the transaction of a claim that is no longer the claimer's. */
export class StaleClaim extends Error {
  override readonly name = "StaleClaim";
}

/**
 * Runs the caller's writes and the job's success in the open transaction, whose commit is the last thing sent.
 *
 * @param enqueuing for jobs that the caller's function enqueues; it may take its time, and must not hold up others.
 * @param ending called when the caller's function is done and locks of the store's own are about to be taken.
 */
export async function transact<T>(
  session: Session,
  enqueuing: Session,
  params: TransactParams<T>,
  connection: object,
  ending: () => void,
): Promise<TransactResult<T>> {
  await assertHeld(session, params);
  const transaction = new OpenTransaction(enqueuing, connection);
  openTransactions.set(transaction.handle, transaction);
  try {
    const value = await params.run(transaction.handle);
    await transaction.settled();
    const result = params.encode(value);
    ending();
    await succeed(session, params, result);
    return { outcome: "committed", value };
  } finally {
    await transaction.close();
  }
}

/** Looks without locking: the caller's function may take its time, and others may want to renew or cancel the job meanwhile. */
async function assertHeld({ link, ns, claimers }: Session, claim: Claim): Promise<void> {
  const { rows } = await link.query(
    sql`select 1 from escapement_jobs where ns = ${ns} and id = ${claim.id} and state = 'active' and token = ${claim.token}
      and claimer = ${claimers.of(claim.claimer)} and relayed = 0`,
  );
  if (rows.length === 0) throw new StaleClaim("the claim ended before its transaction");
}

interface Claim {
  readonly claimer: string;
  readonly id: string;
  readonly token: number;
}

async function succeed(session: Session, claim: Claim, result: string | null): Promise<void> {
  const { link, claimers } = session;
  const [, jobs] = await Promise.all([
    link.query(guard.check),
    lockJobs(session, [claim.id]),
    session.lines.refresh(link),
  ]).catch((error: unknown) => {
    throw explainCheck(error);
  });
  const job = jobs.get(claim.id);
  if (job === undefined || job.relayed || !isHeldBy(job, claimers.of(claim.claimer), claim.token)) {
    throw new StaleClaim("the claim ended inside its own transaction");
  }
  const { state } = settleClaim(session, job, { kind: "succeed", result }, true);
  await tellChildren(session, [{ seq: job.seq, id: job.id, state }]);
}

/** A caller's connection may lead to another server or database; jobs written there would be found by nobody. */
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
    "expected tx to be a connection to the store's own database, got one on which its tables are not there",
  );
}
