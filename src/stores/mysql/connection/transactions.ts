import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "../../../clock.ts";
import type { Notice } from "../../../store/notices.ts";
import { NoticeDraft } from "../../notice-draft.ts";
import { isDeadlock, isLost, translateError } from "../errors.ts";
import { numberOf } from "../rows.ts";
import type { Link } from "./link.ts";
import type { Borrowed, Connections } from "./pool.ts";
import { idleLimit, now, setNow, sql } from "./sql.ts";

/** How often a conflicting transaction is tried. */
const maxAttempts = 8;
const maxPauseMs = 20;
/**
 * A process suspended in the middle of a transaction would keep its locks, including the namespace's, for as long as its
 * connection lasts: no one could claim. The store's own statements are milliseconds apart, and a rolled-back transaction is repeated.
 */
export const maxIdleSeconds = 1;

/** An open transaction, and the store's time in it. */
export class Transaction {
  readonly link: Link;
  readonly notices = new NoticeDraft();
  #nowMs: number | null;
  #committed = false;

  constructor(link: Link, clockMs: number | null) {
    this.link = link;
    this.#nowMs = clockMs;
  }

  /**
   * Sets the time of this call; the server's own is known after the first answer.
   *
   * @param idleSeconds how long the transaction may stay idle, set in the same statement; null leaves that as it is.
   * @param isAsked whether the caller itself needs the time.
   */
  setTime(idleSeconds: number | null = null, isAsked = true): void {
    const setting = setNow(this.#nowMs);
    this.link.write(idleSeconds === null ? setting : sql`${setting}, ${idleLimit(idleSeconds)}`);
    if (this.#nowMs !== null || !isAsked) return;
    this.link.query(sql`select ${now}`).then(
      ({ rows }) => {
        this.#nowMs = numberOf(rows[0]?.[0]);
      },
      // Another query of the same trip reports the error.
      () => {},
    );
  }

  /** The store's time in milliseconds. */
  get now(): number {
    if (this.#nowMs === null)
      throw new Error("the store's time is known only after the first answer, and only if it was asked for");
    return this.#nowMs;
  }

  /** Sends the commit in the same trip as the queries before it. */
  commit(): void {
    this.#committed = true;
    this.link.write(sql`commit`);
  }

  get committed(): boolean {
    return this.#committed;
  }
}

interface TransactionsOptions {
  readonly connections: Connections;
  /** The store's clock, if it is not the server's. */
  readonly clock: Clock | null;
  readonly publish: (notices: readonly Notice[]) => void;
}

/** Runs calls on borrowed connections, again if the server rolled them back in favour of others. */
export class Transactions {
  readonly #options: TransactionsOptions;

  constructor(options: TransactionsOptions) {
    this.#options = options;
  }

  /**
   * Runs work in a READ COMMITTED transaction. It may run several times, each time from the start.
   *
   * @param asksTime false: the work leaves the time to the server, which saves a statement.
   */
  async write<T>(work: (transaction: Transaction) => Promise<T>, asksTime = true): Promise<T> {
    return this.#run(async (borrowed) => {
      const transaction = this.begin(borrowed, maxIdleSeconds, asksTime);
      const value = await work(transaction);
      if (!transaction.committed) transaction.commit();
      await borrowed.link.flush();
      this.#options.publish(transaction.notices.toNotices());
      return value;
    });
  }

  /** Runs queries that need no transaction. */
  async read<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return this.#run((borrowed) => {
      const transaction = new Transaction(borrowed.link, this.#clockMs());
      transaction.setTime();
      return work(transaction);
    });
  }

  /** @param idleSeconds how long the server waits for the next statement before it rolls back (MariaDB); 0: forever. */
  begin(borrowed: Borrowed, idleSeconds: number, asksTime = true): Transaction {
    const { link } = borrowed;
    const { setsIsolation } = this.#options.connections;
    if (setsIsolation) link.write(sql`set transaction isolation level read committed`);
    const transaction = new Transaction(link, this.#clockMs());
    transaction.setTime(setsIsolation ? null : idleSeconds, asksTime);
    link.write(sql`start transaction`);
    return transaction;
  }

  /** The settings of a caller's connections belong to the caller. */
  limitIdle({ link }: Borrowed, seconds: number): void {
    if (!this.#options.connections.setsIsolation) link.write(sql`set ${idleLimit(seconds)}`);
  }

  /** A transaction on a caller's connection. */
  on(link: Link): Transaction {
    const transaction = new Transaction(link, this.#clockMs());
    transaction.setTime();
    return transaction;
  }

  /** Runs work once on a connection; the work ends its transaction itself. */
  async once<T>(work: (borrowed: Borrowed) => Promise<T>): Promise<T> {
    const { connections } = this.#options;
    try {
      const borrowed = await connections.borrow();
      try {
        const value = await work(borrowed);
        giveBack(borrowed);
        return value;
      } catch (error) {
        await undo(borrowed, error);
        throw error;
      }
    } catch (error) {
      throw translateError(error, connections.where);
    }
  }

  async #run<T>(work: (borrowed: Borrowed) => Promise<T>): Promise<T> {
    const { connections } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      let borrowed: Borrowed | null = null;
      try {
        borrowed = await connections.borrow();
        const value = await work(borrowed);
        giveBack(borrowed);
        return value;
      } catch (error) {
        if (borrowed !== null) await undo(borrowed, error);
        // The server may have closed a connection that lay idle, before the call or, on a machine that is busy, in the middle of it; what was
        // asked may be repeated.
        const isGone = borrowed !== null && isLost(error) && !isTimeout(error);
        const again = isDeadlock(error) || isGone;
        if (!again || attempt >= maxAttempts) throw translateError(error, connections.where);
        if (isGone) connections.distrust();
        else await delay(Math.random() * maxPauseMs);
      }
    }
  }

  #clockMs(): number | null {
    const { clock } = this.#options;
    return clock === null ? null : Math.trunc(clock.now());
  }
}

function giveBack({ link, release }: Borrowed): void {
  link.close();
  release();
}

/** Leaves no transaction open on a returned connection. */
async function undo({ link, release, discard }: Borrowed, error: unknown): Promise<void> {
  if (isLost(error)) {
    link.close();
    return discard();
  }
  try {
    await link.rollback();
    release();
  } catch {
    discard();
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "store-unavailable";
}
