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
import { Lazy } from "../lazy.ts";
import { transactionSemaphore } from "../transaction-semaphore.ts";
import { openPool, type PgClient, type PgPool } from "./connection/client.ts";
import { Link } from "./connection/link.ts";
import { parseUrl } from "./connection/url.ts";
import { recordOf } from "./rows.ts";

export interface PostgresInboxOptions {
  /** Either this or {@link pool}. */
  readonly url?: string;
  /** An existing `pg` pool of the application; closing the inbox does not end it. */
  readonly pool?: PgPool;
  /** The schema of its table. @default the first in the search path */
  readonly schema?: string;
  /** How many effects run at a time, one connection each; a {@link pool} should have two more, for the keys of waiting effects. @default 8 */
  readonly effects?: number;
  /** @default the server's own */
  readonly clock?: Clock;
}

/** Keeps an inbox's markers in Postgres, next to the effects: each commits with its marker. The effect gets a `pg` client in an open transaction. */
export function postgresInbox(urlOrOptions: string | PostgresInboxOptions): InboxStore {
  const given = typeof urlOrOptions === "string" ? { url: urlOrOptions } : urlOrOptions;
  const options = given.url === undefined ? given : { ...given, url: parseUrl(given.url).url };
  checkKnown(options, ["url", "pool", "schema", "effects", "clock"], "postgresInbox");
  if ((options.url === undefined) === (options.pool === undefined)) {
    throw new EscapementError("invalid-option", "expected postgresInbox to get either a url or a pool");
  }
  return new PostgresInbox(options);
}

/** Processes that create the table wait for each other: `if not exists` alone does not stop two from trying. */
const makerLock = 0x65736370;

const defaultEffects = 8;

/** Connections that no effect may use: keys must be begun and renewed while the maximum number of effects runs. */
const spareConnections = 2;

/** A released key is held by no one. */
const isHeld = "key = $1 and token = $2 and running_until > 0";

/** Indexing an existing table takes longer than a call. */
const migrationTimeoutMs = 10 * 60_000;

/** One of the inbox's own statements, with a deadline. */
type Query = (
  sql: string,
  values?: readonly unknown[],
  timeoutMs?: number,
) => Promise<{ readonly rows: readonly unknown[] }>;

/** What the effect threw does not decide the connection's fate: the caller gets that error as it is. */
type End<T> = InboxCommitted<T> | { readonly outcome: "failed"; readonly error: unknown };

export class PostgresInbox implements InboxStore {
  readonly atomic = true;
  readonly #options: PostgresInboxOptions;
  readonly #callTimeoutMs: number;
  readonly #table: string;
  readonly #effects: number;
  readonly #semaphore: Semaphore;
  readonly #connection = new Lazy("the inbox", () => this.#connect());

  constructor(options: PostgresInboxOptions, callTimeoutMs = 10_000) {
    this.#options = options;
    this.#callTimeoutMs = callTimeoutMs;
    const { schema, effects = defaultEffects } = options;
    this.#effects = checkInteger(effects, 1, 1_000, "effects");
    this.#semaphore = transactionSemaphore(effects);
    this.#table = `${schema === undefined ? "" : `${quote(schema)}.`}escapement_inbox`;
  }

  migrate(): Promise<void> {
    return this.#withClient(async (query) => {
      await query("begin isolation level read committed");
      await query("select pg_advisory_xact_lock($1)", [makerLock], migrationTimeoutMs);
      await query(`create table if not exists ${this.#table} (
        key text primary key, token bigint not null, holder text not null, running_until bigint, done_until bigint)`);
      for (const kind of ["done", "running"]) {
        const sql = `create index if not exists escapement_inbox_${kind} on ${this.#table} (${kind}_until)`;
        await query(sql, [], migrationTimeoutMs);
      }
      await query("commit");
    });
  }

  async begin(params: InboxBegin): Promise<InboxBegun> {
    const { key, holder, leaseMs } = params;
    const now = this.#now();
    // Takes the key if it is free; if not, the same statement returns who holds it.
    const { rows } = await this.#query(
      `with taken as (
         insert into ${this.#table} as i (key, token, holder, running_until) values ($1, 1, $2, ${now} + $3)
         on conflict (key) do update set token = i.token + 1, holder = $2, running_until = ${now} + $3, done_until = null
         where coalesce(i.done_until, 0) <= ${now} and coalesce(i.running_until, 0) <= ${now}
         returning token)
       select token::float8 as token, true as begun, null as done, 0::float8 as left from taken
       union all
       select token::float8, holder = $2, done_until is not null, (running_until - ${now})::float8 from ${this.#table}
       where key = $1 and not exists (select from taken)`,
      [key, holder, leaseMs],
    );
    // Another process took the key after this statement began: the insert hit a row that the rest of the statement does not see.
    if (rows.length === 0) return this.begin(params);
    const row = recordOf(rows[0]);
    if (row["done"] === true) return { outcome: "done" };
    if (row["begun"] === true) return { outcome: "begun", token: Number(row["token"]) };
    return { outcome: "running", retryInMs: Math.max(0, Number(row["left"])) };
  }

  async commit<T>({ key, token, retentionMs, run }: InboxCommit<T>): Promise<InboxCommitted<T>> {
    const work = async (query: Query, client: PgClient): Promise<End<T>> => {
      const transaction = await begin(query);
      let value: T;
      try {
        value = await run(client);
      } catch (error) {
        await query("rollback");
        return { outcome: "failed", error };
      }
      // The marker goes last: until then its lease can be renewed, and others can see it.
      const sql = `update ${this.#table} set ${this.#done} where ${isHeld} and txid_current()::text = $4 returning key`;
      const { rows } = await query(sql, [key, token, retentionMs, transaction]);
      if (rows.length === 0 && (await currentTransaction(query)) !== transaction) throw endedInside();
      await query(rows.length === 0 ? "rollback" : "commit");
      return rows.length === 0 ? { outcome: "stale" } : { outcome: "committed", value };
    };
    const end = await this.#semaphore.run(() => this.#withClient(work));
    if (end.outcome === "failed") throw end.error;
    return end;
  }

  async finish({ key, token, retentionMs }: InboxClaim & { readonly retentionMs: number }): Promise<boolean> {
    const sql = `update ${this.#table} set ${this.#done} where ${isHeld} returning key`;
    return (await this.#query(sql, [key, token, retentionMs])).rows.length > 0;
  }

  async extend({ key, token, leaseMs }: InboxClaim & { readonly leaseMs: number }): Promise<boolean> {
    const sql = `update ${this.#table} set running_until = ${this.#now()} + $3 where ${isHeld} returning key`;
    return (await this.#query(sql, [key, token, leaseMs])).rows.length > 0;
  }

  async release({ key, token }: InboxClaim): Promise<boolean> {
    const sql = `update ${this.#table} set running_until = 0 where ${isHeld} returning key`;
    return (await this.#query(sql, [key, token])).rows.length > 0;
  }

  async prune({ limit, retentionMs }: InboxPrune): Promise<number> {
    const now = this.#now();
    const { rows } = await this.#query(
      `delete from ${this.#table} where key in (
         select key from ${this.#table} where done_until <= ${now} or running_until <= ${now} - $2 limit $1) returning key`,
      [limit, retentionMs],
    );
    return rows.length;
  }

  async close(): Promise<void> {
    const link = await this.#connection.close();
    await link?.close();
  }

  get #done(): string {
    return `running_until = null, done_until = ${this.#now()} + $3`;
  }

  /** The clock as an SQL expression: a test's own, or the server's. */
  #now(): string {
    const { clock } = this.#options;
    return clock === undefined
      ? "(extract(epoch from clock_timestamp()) * 1000)::bigint"
      : String(Math.trunc(clock.now()));
  }

  #query(sql: string, values: readonly unknown[]): Promise<{ readonly rows: readonly unknown[] }> {
    return this.#withClient((query) => query(sql, values));
  }

  /** A connection on which something failed is discarded, along with its open transaction. */
  async #withClient<T>(use: (query: Query, client: PgClient) => Promise<T>): Promise<T> {
    const link = await this.#connection.get();
    return link.borrow((client) => {
      const query: Query = (sql, values, timeoutMs) =>
        link.within(client.query(sql, values), "an answer", timeoutMs);
      return use(query, client);
    });
  }

  async #connect(): Promise<Link> {
    const { url = "", pool } = this.#options;
    const callTimeoutMs = this.#callTimeoutMs;
    const connections = this.#effects + spareConnections;
    return new Link({
      pool: pool ?? (await openPool({ url, connections, callTimeoutMs })),
      owned: pool === undefined,
      callTimeoutMs,
      place: "of the inbox",
    });
  }
}

const current = "select txid_current()::text as id";

/** Begins a transaction in one trip and returns its number: a transaction that ended inside the effect has nothing to do with the marker. */
async function begin(query: Query): Promise<unknown> {
  const answers: unknown = await query(`begin isolation level read committed; ${current}`);
  const last = Array.isArray(answers) ? recordOf(answers.at(-1)) : {};
  return Array.isArray(last["rows"]) ? recordOf(last["rows"][0])["id"] : null;
}

async function currentTransaction(query: Query): Promise<unknown> {
  return recordOf((await query(current)).rows[0])["id"];
}

function endedInside(): EscapementError {
  return new EscapementError(
    "transaction-used",
    "the effect ended its transaction itself; leave commit and rollback to the inbox",
  );
}

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
