import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "../../../clock.ts";
import { EscapementError } from "../../../errors.ts";
import type { Notice } from "../../../store/notices.ts";
import { NoticeDraft } from "../../notice-draft.ts";
import { isLocked, translateError } from "../errors.ts";
import type { Connection } from "./connection.ts";

/** How long SQLite itself waits for the lock, blocking the event loop. */
export const lockTimeoutMs = 20;
/** How long a call waits for the lock in total, without blocking the event loop. */
export const lockDeadlineMs = 30_000;
const minPauseMs = 2;
const maxPauseMs = 25;
/** Maximum number of calls that share one commit. */
const maxGroup = 500;

type Work<T> = (connection: Connection, notices: NoticeDraft) => T;

/**
 * Which calls may share a commit. `shared`: any; if one throws, all are retried, each on its own. `guarded`: a
 * function of the user, which should not run again because of others; if another call in its group throws, only that call's writes
 * are undone. `alone`: none.
 */
export type Sharing = "shared" | "guarded" | "alone";

interface Call {
  readonly sharing: Sharing;
  readonly run: (connection: Connection, notices: NoticeDraft) => void;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export interface TransactionsOptions {
  readonly connection: Connection;
  readonly clock: Clock;
  /** For messages. */
  readonly path: string;
  readonly publish: (notices: readonly Notice[]) => void;
  /** @default {@link lockDeadlineMs} */
  readonly deadlineMs?: number;
}

/**
 * Runs calls in IMMEDIATE transactions, in order. Calls made in the same turn of the event loop share one
 * commit; if it fails, each is retried in its own transaction, so every caller gets its own error.
 */
export class Transactions {
  readonly #options: TransactionsOptions;
  readonly #deadlineMs: number;
  readonly #calls: Call[] = [];
  /** How many of them shared a failed transaction: they get one each. */
  #single = 0;
  #scheduled = false;
  /** When the wait for the lock began; it is in real time, whatever the store's clock says. */
  #lockedSince: number | null = null;
  #drained: (() => void) | null = null;
  #closed = false;

  constructor(options: TransactionsOptions) {
    this.#options = options;
    this.#deadlineMs = options.deadlineMs ?? lockDeadlineMs;
  }

  write<T>(work: Work<T>, sharing: Sharing = "shared"): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(this.#closedError());
      let answer: () => void = () => {};
      this.#calls.push({
        sharing,
        run: (connection, notices) => {
          const value = work(connection, notices);
          answer = () => resolve(value);
        },
        resolve: () => answer(),
        reject,
      });
      this.#schedule();
    });
  }

  /** Runs a read on one snapshot of the database. */
  async read<T>(work: (connection: Connection) => T): Promise<T> {
    const since = performance.now();
    for (;;) {
      if (this.#closed) throw this.#closedError();
      try {
        return this.#readOnce(work);
      } catch (error) {
        if (!isLocked(error) || performance.now() - since > this.#deadlineMs) throw this.#translate(error);
      }
      await delay(pauseMs());
    }
  }

  /** Waits for the calls in progress, and refuses new ones. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#calls.length === 0) return;
    await new Promise<void>((resolve) => {
      this.#drained = resolve;
    });
  }

  #readOnce<T>(work: (connection: Connection) => T): T {
    const { connection } = this.#options;
    // A caller's transaction function may query the store; those reads belong to its transaction.
    if (connection.database.isTransaction) return work(connection);
    connection.run("begin");
    try {
      return work(connection);
    } finally {
      connection.run("rollback");
    }
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#options.clock.defer(() => this.#flush());
  }

  #flush(): void {
    this.#scheduled = false;
    const group = this.#nextGroup();
    if (group.length === 0) return;
    try {
      this.#options.connection.run("begin immediate");
    } catch (error) {
      if (isLocked(error)) return this.#waitForLock(error);
      return this.#failed(group, error);
    }
    try {
      this.#done(group, this.#commit(group));
    } catch (error) {
      this.#failed(group, error);
    }
  }

  #afterGroup(): void {
    this.#lockedSince = null;
    if (this.#calls.length > 0) this.#schedule();
    else this.#drained?.();
  }

  #nextGroup(): readonly Call[] {
    if (this.#single > 0 || this.#calls[0]?.sharing === "alone") return this.#calls.slice(0, 1);
    const end = this.#calls.findIndex(({ sharing }) => sharing === "alone");
    return this.#calls.slice(0, Math.min(end < 0 ? maxGroup : end, maxGroup));
  }

  /** Runs the calls in the open transaction and commits it. Returns the errors of calls that the others were guarded against. */
  #commit(group: readonly Call[]): ReadonlyMap<Call, unknown> {
    const { connection, publish } = this.#options;
    const notices = new NoticeDraft();
    const failed = new Map<Call, unknown>();
    const isGuarded = group.length > 1 && group.some(({ sharing }) => sharing === "guarded");
    try {
      for (const call of group) {
        if (isGuarded) this.#guard(call, notices, failed);
        else call.run(connection, notices);
      }
      connection.run("commit");
    } catch (error) {
      if (connection.database.isTransaction) connection.run("rollback");
      throw error;
    }
    publish(notices.toNotices());
    return failed;
  }

  #guard(call: Call, notices: NoticeDraft, failed: Map<Call, unknown>): void {
    const { connection } = this.#options;
    connection.run("savepoint escapement_call");
    try {
      call.run(connection, notices);
      connection.run("release escapement_call");
    } catch (error) {
      // The writes of the others are gone with it.
      if (!connection.database.isTransaction) throw error;
      connection.run("rollback to escapement_call");
      connection.run("release escapement_call");
      failed.set(call, error);
    }
  }

  /** Nothing of it was committed. Calls that shared the transaction are retried, each in its own. */
  #failed(group: readonly Call[], error: unknown): void {
    const [first] = group;
    if (group.length > 1) this.#single = group.length;
    else if (first !== undefined) return this.#done(group, new Map([[first, error]]));
    this.#afterGroup();
  }

  #done(group: readonly Call[], failed: ReadonlyMap<Call, unknown>): void {
    this.#calls.splice(0, group.length);
    this.#single = Math.max(0, this.#single - group.length);
    for (const call of group) {
      if (failed.has(call)) call.reject(this.#translate(failed.get(call)));
      else call.resolve();
    }
    this.#afterGroup();
  }

  #waitForLock(error: unknown): void {
    this.#lockedSince ??= performance.now();
    if (performance.now() - this.#lockedSince > this.#deadlineMs) {
      this.#single = 0;
      for (const call of this.#calls.splice(0)) call.reject(this.#translate(error));
      this.#afterGroup();
      return;
    }
    this.#scheduled = true;
    setTimeout(() => this.#flush(), pauseMs());
  }

  #translate(error: unknown): unknown {
    return translateError(error, this.#options.path);
  }

  #closedError(): EscapementError {
    return new EscapementError(
      "stopped",
      `SQLite store ${this.#options.path} is closed; open it again to use it`,
    );
  }
}

/** Jitter keeps processes that wait for the same lock out of step. */
export function pauseMs(): number {
  return minPauseMs + Math.random() * (maxPauseMs - minPauseMs);
}
