import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "../../clock.ts";
import type { Notice } from "../../store.ts";
import { isDeadlock, isLost, translateError } from "./errors.ts";
import type { Link } from "./link.ts";
import { NoticeDraft } from "./notices.ts";
import type { Borrowed, Connections } from "./pool.ts";
import { numberOf } from "./rows.ts";
import { idleLimit, now, setNow, sql } from "./sql.ts";

/** How often a transaction that others were in the way of is tried. */
const maxTries = 8;
const maxPauseMs = 20;
/**
 * A process that is stopped in the middle of a transaction would keep its locks, that of the namespace among them, for as long as its
 * connection stands: nobody could claim. Between two statements of the store's own there are milliseconds, and what was undone is repeated.
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
   * Sets the time of this call; the server's own is known as soon as the first question was answered.
   *
   * @param idleSeconds how long the transaction may lie still, set in the same statement; null leaves that as it is.
   * @param isAsked whether the caller has to know the time itself.
   */
  setTime(idleSeconds: number | null = null, isAsked = true): void {
    const setting = setNow(this.#nowMs);
    this.link.write(idleSeconds === null ? setting : sql`${setting}, ${idleLimit(idleSeconds)}`);
    if (this.#nowMs !== null || !isAsked) return;
    this.link.query(sql`select ${now}`).then(
      ({ rows }) => {
        this.#nowMs = numberOf(rows[0]?.[0]);
      },
      // Whoever asked for something else in the same trip is told.
      () => {},
    );
  }

  /** The store's time in milliseconds. */
  get now(): number {
    if (this.#nowMs === null)
      throw new Error(
        "the store's time is known only after the first answer, and only where it is asked for",
      );
    return this.#nowMs;
  }

  /** Lets the commit go out in the same trip as what was asked before it. */
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
  /** The store's clock where it is not the server's. */
  readonly clock: Clock | null;
  readonly publish: (notices: readonly Notice[]) => void;
}

/** Runs calls on borrowed connections, again where the server undid them for the sake of others. */
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

  /** Runs questions that need no transaction. */
  async read<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return this.#run((borrowed) => {
      const transaction = new Transaction(borrowed.link, this.#clockMs());
      transaction.setTime();
      return work(transaction);
    });
  }

  /** @param idleSeconds how long the server waits for its next statement before it undoes it (MariaDB); 0: for ever. */
  begin(borrowed: Borrowed, idleSeconds: number, asksTime = true): Transaction {
    const { link } = borrowed;
    const { setsIsolation } = this.#options.connections;
    if (setsIsolation) link.write(sql`set transaction isolation level read committed`);
    const transaction = new Transaction(link, this.#clockMs());
    transaction.setTime(setsIsolation ? null : idleSeconds, asksTime);
    link.write(sql`start transaction`);
    return transaction;
  }

  /** The settings of a caller's connections are the caller's. */
  limitIdle({ link }: Borrowed, seconds: number): void {
    if (!this.#options.connections.setsIsolation) link.write(sql`set ${idleLimit(seconds)}`);
  }

  /** A transaction on a connection of the caller's. */
  on(link: Link): Transaction {
    const transaction = new Transaction(link, this.#clockMs());
    transaction.setTime();
    return transaction;
  }

  /** Runs work once on a connection that it ends its transaction on itself. */
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
    for (let tries = 1; ; tries += 1) {
      let borrowed: Borrowed | null = null;
      try {
        borrowed = await connections.borrow();
        const value = await work(borrowed);
        giveBack(borrowed);
        return value;
      } catch (error) {
        if (borrowed !== null) await undo(borrowed, error);
        // A connection that lay idle may have been closed by the server; what was asked may be repeated.
        const stale = borrowed?.used === true && isLost(error) && !isTimeout(error);
        const again = isDeadlock(error) || stale;
        if (!again || tries >= maxTries) throw translateError(error, connections.where);
        if (stale) connections.distrust();
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

/** Leaves no transaction open on a connection that goes back. */
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
