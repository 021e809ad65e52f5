/**
 * The table of effects, on a connection of its own: what is checked must not be seen through what is tested. It has no unique key, so
 * that a second effect shows.
 */
import { DatabaseSync } from "node:sqlite";
import type { Effect } from "./history.ts";
import { type StoreKind, type StoreTarget, sqliteFile } from "./store-kind.ts";

const table = "escapement_verify_effects";
const columns = "run varchar(100) not null, job varchar(200) not null, token integer not null";

export interface EffectRow extends Effect {
  /** The namespace of the run. */
  readonly run: string;
}

/** A database's handle, as far as an effect needs it: SQLite's, pg's or mysql2's. */
interface EffectHandle {
  prepare(sql: string): { run(...values: (string | number)[]): unknown };
  query(sql: string, values: (string | number)[]): Promise<unknown>;
}

/** Writes an effect inside of a handler's transaction. By the kind of store, since mysql2 has a `prepare` too, and it means something else. */
export function writeEffect(db: EffectHandle, kind: StoreKind, { run, job, token }: EffectRow): unknown {
  const places = kind === "postgres" ? "$1, $2, $3" : "?, ?, ?";
  const sql = `insert into ${table} (run, job, token) values (${places})`;
  return kind === "postgres" || kind === "mysql"
    ? db.query(sql, [run, job, token])
    : db.prepare(sql).run(run, job, token);
}

export interface EffectsTable extends AsyncDisposable {
  read(run: string): Promise<Effect[]>;
  /** Whether a write gets through now; a process that was stopped in the middle of one keeps all others out. */
  isWritable(withinMs: number): boolean;
  forget(run: string): Promise<void>;
}

/** Makes the table where it is missing. */
export async function openEffects(target: StoreTarget, inbox: string | null): Promise<EffectsTable> {
  if (inbox !== null) return openSqlite(inbox);
  if (target.kind === "postgres") return openPostgres(target.url);
  if (target.kind === "mysql") return openMysql(target.url);
  return openSqlite(sqliteFile(target.url));
}

function openSqlite(path: string): EffectsTable {
  const database = new DatabaseSync(path, { timeout: 10_000 });
  database.exec("pragma journal_mode = wal");
  database.exec(`create table if not exists ${table} (${columns})`);
  return {
    async read(run) {
      const rows = database.prepare(`select job, token from ${table} where run = ?`).all(run);
      return rows.map((row) => ({ job: String(row["job"]), token: Number(row["token"]) }));
    },
    isWritable(withinMs) {
      try {
        database.exec(`pragma busy_timeout = ${Math.round(withinMs)}`);
        database.exec("begin immediate; rollback");
        return true;
      } catch {
        return false;
      } finally {
        database.exec("pragma busy_timeout = 10000");
      }
    },
    async forget(run) {
      database.prepare(`delete from ${table} where run = ?`).run(run);
    },
    async [Symbol.asyncDispose]() {
      database.close();
    },
  };
}

/** Asks on a connection that is new each time: the server may have been restarted since the last one. */
async function openPostgres(url: string): Promise<EffectsTable> {
  const { default: pg } = await import("pg");
  const ask = async (sql: string, values: string[] = []): Promise<Effect[]> => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      const { rows } = await client.query<{ job: string; token: number }>(sql, values);
      return rows.map(({ job, token }) => ({ job, token: Number(token) }));
    } finally {
      await client.end();
    }
  };
  await ask(`create table if not exists ${table} (${columns})`);
  return serverEffects(
    (run) => ask(`select job, token from ${table} where run = $1`, [run]),
    (run) => ask(`delete from ${table} where run = $1`, [run]),
  );
}

async function openMysql(url: string): Promise<EffectsTable> {
  const { createConnection } = await import("mysql2/promise");
  const ask = async (sql: string, values: string[] = []): Promise<Effect[]> => {
    const connection = await createConnection(url.replace(/^mariadb:/, "mysql:"));
    try {
      const [rows] = await connection.query(sql, values);
      if (!Array.isArray(rows)) return [];
      return (rows as { job: string; token: number }[]).map(({ job, token }) => ({
        job,
        token: Number(token),
      }));
    } finally {
      await connection.end();
    }
  };
  await ask(`create table if not exists ${table} (${columns})`);
  return serverEffects(
    (run) => ask(`select job, token from ${table} where run = ?`, [run]),
    (run) => ask(`delete from ${table} where run = ?`, [run]),
  );
}

function serverEffects(read: EffectsTable["read"], forget: (run: string) => Promise<unknown>): EffectsTable {
  return {
    read,
    isWritable: () => true,
    async forget(run) {
      await forget(run);
    },
    async [Symbol.asyncDispose]() {},
  };
}
