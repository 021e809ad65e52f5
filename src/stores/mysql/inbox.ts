import type { Clock } from "../../clock.ts";
import { EscapementError } from "../../errors.ts";
import { checkInteger, checkKnown } from "../../options.ts";
import type { Semaphore } from "../../runtime/semaphore.ts";
import type {
  InboxBegin,
  InboxBegun,
  InboxClaim,
  InboxCommit,
  InboxCommitted,
  InboxPrune,
  InboxStore,
} from "../../store/inbox.ts";
import { transactionSemaphore } from "../transaction-semaphore.ts";
import { loadClient, type RawConnection, type Target, targetOf } from "./connection/client.ts";
import { explainCheck, guard } from "./connection/guard.ts";
import { OwnLink } from "./connection/link.ts";
import { type Sql, serverNow, sql } from "./connection/sql.ts";
import { isConflict, isLost, translateError } from "./errors.ts";

export interface MysqlInboxOptions {
  /** `mysql://user:password@host:3306/database` */
  readonly url: string;
  /** @default "escapement_" */
  readonly tablePrefix?: string;
  /** How many effects run at a time, each on a connection. @default 8 */
  readonly effects?: number;
  /** @default the server's own */
  readonly clock?: Clock;
}

/** Keeps an inbox's markers in MySQL or MariaDB, next to the effects: each commits with its marker. The effect gets a `mysql2/promise` connection in an open transaction. */
export function mysqlInbox(urlOrOptions: string | MysqlInboxOptions): InboxStore {
  const options = typeof urlOrOptions === "string" ? { url: urlOrOptions } : urlOrOptions;
  checkKnown(options, ["url", "tablePrefix", "effects", "clock"], "mysqlInbox");
  return new MysqlInbox(options);
}

const defaultEffects = 8;
const maxIdle = 5;
const maxAttempts = 8;

/** What the effect threw does not decide the connection's fate: the caller gets that error as it is. */
type End<T> = InboxCommitted<T> | { readonly outcome: "failed"; readonly error: unknown };

export class MysqlInbox implements InboxStore {
  readonly atomic = true;
  readonly #target: Target;
  readonly #tablePrefix: string;
  readonly #clock: Clock | undefined;
  readonly #callTimeoutMs: number;
  readonly #semaphore: Semaphore;
  readonly #idle: RawConnection[] = [];
  #isClosed = false;

  constructor(options: MysqlInboxOptions, callTimeoutMs = 10_000) {
    const { tablePrefix = "escapement_", effects = defaultEffects } = options;
    if (!/^\w{0,32}$/.test(tablePrefix)) {
      throw new EscapementError(
        "invalid-option",
        `expected tablePrefix to be letters, digits and _, got ${JSON.stringify(tablePrefix)}`,
      );
    }
    this.#target = targetOf(options.url);
    this.#tablePrefix = tablePrefix;
    this.#clock = options.clock;
    this.#callTimeoutMs = callTimeoutMs;
    this.#semaphore = transactionSemaphore(checkInteger(effects, 1, 1_000, "effects"));
  }

  async migrate(): Promise<void> {
    await this.#patiently((link) =>
      link.query(
        sql`create table if not exists escapement_inbox (
              \`key\` varbinary(2048) not null, token bigint not null, holder varbinary(1024) not null,
              running_until bigint, done_until bigint, primary key (\`key\`), key (done_until), key (running_until)
            ) engine = InnoDB row_format = dynamic`,
      ),
    );
  }

  begin({ key, holder, leaseMs }: InboxBegin): Promise<InboxBegun> {
    return this.#patiently(async (link): Promise<InboxBegun> => {
      const now = this.#now();
      // An empty row is inserted first, so there is always one to lock. The update that changes nothing locks it at once:
      // if they read it first, two callers would deadlock.
      await link.query(
        sql`insert into escapement_inbox (\`key\`, token, holder, running_until) values (${key}, 0, '', 0)
            on duplicate key update token = token`,
      );
      const { rows } = await link.query(
        sql`select token, holder = ${holder}, running_until > ${now}, done_until > ${now}, running_until - ${now}
            from escapement_inbox where \`key\` = ${key} for update`,
      );
      const [row = []] = rows;
      const [token, isOwn, isRunning, isDone, leftMs] = row.map(Number);
      if (isDone === 1) return { outcome: "done" };
      if (isRunning === 1 && isOwn === 1) return { outcome: "begun", token: token ?? 0 };
      if (isRunning === 1) return { outcome: "running", retryInMs: leftMs ?? 0 };
      await link.query(
        sql`update escapement_inbox
            set token = token + 1, holder = ${holder}, running_until = ${now} + ${leaseMs}, done_until = null
            where \`key\` = ${key}`,
      );
      return { outcome: "begun", token: (token ?? 0) + 1 };
    });
  }

  async commit<T>({ key, token, retentionMs, run }: InboxCommit<T>): Promise<InboxCommitted<T>> {
    const work = async (link: OwnLink): Promise<End<T>> => {
      await link.query(guard.mark);
      let value: T;
      try {
        value = await run(link.connection.promise());
      } catch (error) {
        return { outcome: "failed", error };
      }
      await link.query(guard.check).catch((error: unknown) => {
        throw explainCheck(error);
      });
      // The marker goes last: until then its lease can be renewed, and others can see it.
      const isOwn = await change(link, { key, token }, this.#done(retentionMs));
      return isOwn ? { outcome: "committed", value } : { outcome: "stale" };
    };
    // Repeating the effect is up to the caller.
    const end = await this.#semaphore.run(() => this.#patiently(work, 1));
    if (end.outcome === "failed") throw end.error;
    return end;
  }

  finish({ retentionMs, ...claim }: InboxClaim & { readonly retentionMs: number }): Promise<boolean> {
    return this.#patiently((link) => change(link, claim, this.#done(retentionMs)));
  }

  extend({ leaseMs, ...claim }: InboxClaim & { readonly leaseMs: number }): Promise<boolean> {
    return this.#patiently((link) => change(link, claim, sql`running_until = ${this.#now()} + ${leaseMs}`));
  }

  release(claim: InboxClaim): Promise<boolean> {
    return this.#patiently((link) => change(link, claim, sql`running_until = 0`));
  }

  prune({ limit, retentionMs }: InboxPrune): Promise<number> {
    return this.#patiently(async (link) => {
      const now = this.#now();
      const { affected } = await link.query(
        sql`delete from escapement_inbox where done_until <= ${now} or running_until <= ${now} - ${retentionMs}
            limit ${limit}`,
      );
      return affected;
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#idle.splice(0).map((connection) => this.#end(connection)));
  }

  #done(retentionMs: number): Sql {
    return sql`running_until = null, done_until = ${this.#now()} + ${retentionMs}`;
  }

  /** The clock as an SQL expression: a test's own, or the server's. */
  #now(): number | Sql {
    return this.#clock === undefined ? serverNow : this.#clock.now();
  }

  /** Deadlocks are normal in InnoDB; a conflicting transaction is retried. */
  async #patiently<T>(work: (link: OwnLink) => Promise<T>, most = maxAttempts): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#inTransaction(work);
      } catch (error) {
        if (attempt >= most || !isConflict(error)) throw translateError(error, this.#target.where);
      }
    }
  }

  async #inTransaction<T>(work: (link: OwnLink) => Promise<T>): Promise<T> {
    // A late call must not open a connection that no one would close.
    if (this.#isClosed)
      throw new EscapementError("stopped", "the inbox is closed; create another one to continue");
    const connection = this.#idle.pop() ?? (await this.#connect());
    const link = this.#linkOver(connection);
    try {
      await link.query(sql`set transaction isolation level read committed`);
      await link.query(sql`start transaction`);
      const result = await work(link);
      await link.query(isUndone(result) ? sql`rollback` : sql`commit`);
      this.#giveBack(connection);
      return result;
    } catch (error) {
      if (isEnded(error)) {
        // What else the effect did to its connection is unknown.
        connection.destroy();
      } else if (isLost(error)) {
        // The other idle ones are probably dead too.
        for (const dead of [connection, ...this.#idle.splice(0)]) dead.destroy();
      } else {
        await link.rollback().then(
          () => this.#giveBack(connection),
          () => connection.destroy(),
        );
      }
      throw error;
    }
  }

  /** The caller's effect uses the connection too, so its settings are unknown. */
  #linkOver(connection: RawConnection): OwnLink {
    const [tablePrefix, timeoutMs, { where }] = [this.#tablePrefix, this.#callTimeoutMs, this.#target];
    return new OwnLink({ connection, tablePrefix, timeoutMs, where, multiple: false, foreign: true });
  }

  #giveBack(connection: RawConnection): void {
    if (this.#idle.length < maxIdle && !this.#isClosed) this.#idle.push(connection);
    else connection.destroy();
  }

  async #connect(): Promise<RawConnection> {
    const { config, where } = this.#target;
    const ms = this.#callTimeoutMs;
    const connection = (await loadClient()).createConnection({ ...config, connectTimeout: ms });
    // A connection that breaks while idle must not crash the process, nor serve the next call.
    connection.on("error", () => {
      const place = this.#idle.indexOf(connection);
      if (place >= 0) this.#idle.splice(place, 1);
    });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const late = `MySQL store ${where}: no connection within ${ms} ms; check that the server runs and can be reached`;
    const timer = setTimeout(() => reject(new EscapementError("store-unavailable", late)), ms);
    connection.connect((error) => (error ? reject(error) : resolve()));
    try {
      await promise;
      await this.#linkOver(connection).query(guard.on);
      return connection;
    } catch (error) {
      connection.destroy();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Closes politely, without waiting for a server that does not answer. */
  async #end(connection: RawConnection): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, this.#callTimeoutMs);
    connection.end(() => resolve());
    await promise;
    clearTimeout(timer);
    connection.destroy();
  }
}

function isEnded(error: unknown): boolean {
  return error instanceof EscapementError && error.code === "transaction-used";
}

async function change(link: OwnLink, { key, token }: InboxClaim, what: Sql): Promise<boolean> {
  // A released key is held by no one.
  const mine = sql`\`key\` = ${key} and token = ${token} and running_until > 0`;
  const { rows } = await link.query(sql`select 1 from escapement_inbox where ${mine} for update`);
  if (rows.length === 0) return false;
  await link.query(sql`update escapement_inbox set ${what} where ${mine}`);
  return true;
}

/** Whether the caller's writes, if any, must be rolled back. */
function isUndone(result: unknown): boolean {
  if (typeof result !== "object" || result === null || !("outcome" in result)) return false;
  return result.outcome === "stale" || result.outcome === "failed";
}
