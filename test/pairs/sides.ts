import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createConnection } from "mysql2/promise";
import pg from "pg";
import type { InboxStore } from "../../src/inbox/index.ts";
import type { StoreFactory } from "../../src/store/opening.ts";
import { mysql, mysqlInbox } from "../../src/stores/mysql/index.ts";
import { postgres, postgresInbox } from "../../src/stores/postgres/index.ts";
import { redis } from "../../src/stores/redis/index.ts";
import { sqlite, sqliteInbox } from "../../src/stores/sqlite/index.ts";
import { type Server, testbed } from "../../testbed/index.ts";

/** What both SQL servers' clients take. */
interface Queried {
  query(sql: string, values?: unknown[]): Promise<unknown>;
}

/** The effects of a consumer, in the database of its inbox. */
export interface Effects extends AsyncDisposable {
  readonly inbox: InboxStore;
  /** A handler's effect, given what its `tx` gives. */
  record(db: never, id: string): unknown;
  /** The ids of all jobs that took effect, as often as they did. */
  ids(): Promise<string[]>;
}

/** A store to fire from, and where the effects of its jobs are kept. */
export interface Side {
  readonly skip: string | false;
  store(): StoreFactory;
  effects(): Promise<Effects>;
}

const servers = {
  postgres: await testbed.postgres(),
  mysql: await testbed.mysql(),
  redis: await testbed.redis(),
};
let places = 0;

function newFile(): string {
  return join(mkdtempSync(join(tmpdir(), "escapement-pair-")), "jobs.db");
}

async function inSqlite(): Promise<Effects> {
  const path = newFile();
  const database = new DatabaseSync(path);
  database.exec("create table effects (id text)");
  return {
    inbox: sqliteInbox({ path, durability: "normal" }),
    record: (db: DatabaseSync, id) => db.prepare("insert into effects values (?)").run(id),
    ids: async () =>
      database
        .prepare("select id from effects")
        .all()
        .map(({ id }) => String(id)),
    [Symbol.asyncDispose]: async () => database.close(),
  };
}

async function inPostgres({ url }: Server): Promise<Effects> {
  const table = `effects_${++places}`;
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  await pool.query(`create table ${table} (id text)`);
  return {
    inbox: postgresInbox(url),
    record: (db: Queried, id) => db.query(`insert into ${table} values ($1)`, [id]),
    ids: async () => (await pool.query<{ id: string }>(`select id from ${table}`)).rows.map(({ id }) => id),
    [Symbol.asyncDispose]: () => pool.end(),
  };
}

async function inMysql({ url }: Server): Promise<Effects> {
  const table = `effects_${++places}`;
  const connection = await createConnection(url);
  await connection.query(`create table ${table} (id varchar(200))`);
  return {
    inbox: mysqlInbox(url),
    record: (db: Queried, id) => db.query(`insert into ${table} values (?)`, [id]),
    async ids() {
      const [rows] = await connection.query(`select id from ${table}`);
      return (rows as { id: string }[]).map(({ id }) => id);
    },
    [Symbol.asyncDispose]: () => connection.end(),
  };
}

export const sides = {
  sqlite: { skip: false, store: () => sqlite(newFile()), effects: inSqlite },
  postgres: {
    skip: servers.postgres.skip,
    store: () => postgres(servers.postgres.url),
    effects: () => inPostgres(servers.postgres),
  },
  mysql: {
    skip: servers.mysql.skip,
    store: () => mysql(servers.mysql.url),
    effects: () => inMysql(servers.mysql),
  },
  // Jobs in Redis, and effects in SQL: a Redis inbox promises no single effect.
  redis: {
    skip: servers.redis.skip,
    store: () => redis({ url: servers.redis.url, prefix: `${servers.redis.name}-pair-${++places}` }),
    effects: inSqlite,
  },
} satisfies Record<string, Side>;
