import { type Clock, systemClock } from "../../clock.ts";
import { silentLogger } from "../../log.ts";
import type {
  InboxBegin,
  InboxBegun,
  InboxClaim,
  InboxCommit,
  InboxCommitted,
  InboxPrune,
  InboxStore,
} from "../../store/inbox.ts";
import { Lazy } from "../lazy.ts";
import type { Connection } from "./connection/connection.ts";
import { checkMode } from "./connection/database-file.ts";
import { type Engine, openFileEngine } from "./connection/engine.ts";
import { type Sharing, Transactions } from "./connection/transactions.ts";
import { numberOf, textOf } from "./rows.ts";
import { CallerError, runCaller } from "./transact.ts";

export interface SqliteInboxOptions {
  readonly path: string;
  readonly durability?: "full" | "normal";
  /** The permissions of the files that the inbox creates. @default 0o600 */
  readonly mode?: number;
  /** @default the machine's */
  readonly clock?: Clock;
}

/** Keeps an inbox's markers in a SQLite file, next to the effects: each commits with its marker. The effect is a synchronous function. */
export function sqliteInbox(pathOrOptions: string | SqliteInboxOptions): InboxStore {
  const options = typeof pathOrOptions === "string" ? { path: pathOrOptions } : pathOrOptions;
  return new SqliteInbox(options);
}

const schema = `create table if not exists escapement_inbox (
  key text primary key,
  token integer not null,
  holder text not null,
  running_until integer,
  done_until integer
) strict, without rowid;
create index if not exists escapement_inbox_done on escapement_inbox (done_until) where done_until is not null;
create index if not exists escapement_inbox_running on escapement_inbox (running_until) where running_until is not null`;

/** A released key is held by no one. */
const isHeld = "key = ? and token = ? and running_until > 0";

class StaleToken extends Error {
  override readonly name = "StaleToken";
}

interface Opened {
  readonly engine: Engine;
  readonly transactions: Transactions;
}

class SqliteInbox implements InboxStore {
  readonly atomic = true;
  readonly #options: SqliteInboxOptions;
  readonly #clock: Clock;
  readonly #database = new Lazy("the inbox", () => this.#open());

  constructor(options: SqliteInboxOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  async migrate(): Promise<void> {
    await this.#write((connection) => connection.database.exec(schema), "alone");
  }

  begin({ key, holder, leaseMs }: InboxBegin): Promise<InboxBegun> {
    return this.#write((connection): InboxBegun => {
      const now = this.#now();
      const row = connection.get(
        "select token, holder, running_until, done_until from escapement_inbox where key = ?",
        key,
      );
      const doneUntil = row?.["done_until"] ?? null;
      if (doneUntil !== null && numberOf(doneUntil) > now) return { outcome: "done" };
      const runningUntil = row?.["running_until"] ?? null;
      if (row !== undefined && runningUntil !== null && numberOf(runningUntil) > now) {
        if (textOf(row["holder"]) === holder) return { outcome: "begun", token: numberOf(row["token"]) };
        return { outcome: "running", retryInMs: numberOf(runningUntil) - now };
      }
      const token = row === undefined ? 1 : numberOf(row["token"]) + 1;
      connection.run(
        `insert into escapement_inbox (key, token, holder, running_until, done_until) values (?, ?, ?, ?, null)
         on conflict do update set token = excluded.token, holder = excluded.holder,
           running_until = excluded.running_until, done_until = null`,
        key,
        token,
        holder,
        now + leaseMs,
      );
      return { outcome: "begun", token };
    });
  }

  async commit<T>({ key, token, retentionMs, run }: InboxCommit<T>): Promise<InboxCommitted<T>> {
    try {
      const value = await this.#write((connection) => {
        const changed = connection.run(
          `update escapement_inbox set running_until = null, done_until = ?
           where ${isHeld}`,
          this.#now() + retentionMs,
          key,
          token,
        );
        if (changed === 0) throw new StaleToken("another copy took the key over");
        return runCaller(connection.database, run);
      }, "guarded");
      return { outcome: "committed", value };
    } catch (error) {
      if (error instanceof StaleToken) return { outcome: "stale" };
      throw error instanceof CallerError ? error.cause : error;
    }
  }

  finish({ key, token, retentionMs }: InboxClaim & { readonly retentionMs: number }): Promise<boolean> {
    const sql = `update escapement_inbox set running_until = null, done_until = ? where ${isHeld}`;
    return this.#write((connection) => connection.run(sql, this.#now() + retentionMs, key, token) > 0);
  }

  extend({ key, token, leaseMs }: InboxClaim & { readonly leaseMs: number }): Promise<boolean> {
    const sql = `update escapement_inbox set running_until = ? where ${isHeld}`;
    return this.#write((connection) => connection.run(sql, this.#now() + leaseMs, key, token) > 0);
  }

  release({ key, token }: InboxClaim): Promise<boolean> {
    const sql = `update escapement_inbox set running_until = 0 where ${isHeld}`;
    return this.#write((connection) => connection.run(sql, key, token) > 0);
  }

  prune({ limit, retentionMs }: InboxPrune): Promise<number> {
    const sql = `delete from escapement_inbox where key in (
      select key from escapement_inbox where done_until <= ? union all
      select key from escapement_inbox where running_until <= ? limit +?)`;
    return this.#write((connection) => connection.run(sql, this.#now(), this.#now() - retentionMs, limit));
  }

  async close(): Promise<void> {
    const opened = await this.#database.close();
    await opened?.transactions.close();
    opened?.engine.close();
  }

  #now(): number {
    return Math.trunc(this.#clock.now());
  }

  async #write<T>(work: (connection: Connection) => T, sharing?: Sharing): Promise<T> {
    const { transactions } = await this.#database.get();
    return transactions.write(work, sharing);
  }

  async #open(): Promise<Opened> {
    const { path, durability = "full", mode } = this.#options;
    const engine = await openFileEngine(
      { path, durability, mode: checkMode(mode) },
      { namespace: "inbox", clock: this.#clock, log: silentLogger },
    );
    const { connection } = engine;
    return {
      engine,
      transactions: new Transactions({ connection, clock: this.#clock, path: engine.path, publish() {} }),
    };
  }
}
