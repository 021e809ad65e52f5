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
type EffectHandle =
  | { prepare(sql: string): { run(...values: (string | number)[]): unknown } }
  | { query(sql: string, values: (string | number)[]): Promise<unknown> };

/** Writes an effect inside of a handler's transaction. */
export function writeEffect(db: EffectHandle, kind: StoreKind, { run, job, token }: EffectRow): unknown {
  if ("prepare" in db)
    return db.prepare(`insert into ${table} (run, job, token) values (?, ?, ?)`).run(run, job, token);
  const places = kind === "postgres" ? "$1, $2, $3" : "?, ?, ?";
  return db.query(`insert into ${table} (run, job, token) values (${places})`, [run, job, token]);
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

async function openPostgres(url: string): Promise<EffectsTable> {
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`create table if not exists ${table} (${columns})`);
  return {
    async read(run) {
      const { rows } = await client.query<{ job: string; token: number }>(
        `select job, token from ${table} where run = $1`,
        [run],
      );
      return rows.map(({ job, token }) => ({ job, token: Number(token) }));
    },
    isWritable: () => true,
    async forget(run) {
      await client.query(`delete from ${table} where run = $1`, [run]);
    },
    [Symbol.asyncDispose]: () => client.end(),
  };
}

async function openMysql(url: string): Promise<EffectsTable> {
  const { createConnection } = await import("mysql2/promise");
  const connection = await createConnection(url.replace(/^mariadb:/, "mysql:"));
  await connection.query(`create table if not exists ${table} (${columns})`);
  return {
    async read(run) {
      const [rows] = await connection.query(`select job, token from ${table} where run = ?`, [run]);
      return (rows as { job: string; token: number }[]).map(({ job, token }) => ({
        job,
        token: Number(token),
      }));
    },
    isWritable: () => true,
    async forget(run) {
      await connection.query(`delete from ${table} where run = ?`, [run]);
    },
    [Symbol.asyncDispose]: () => connection.end(),
  };
}
