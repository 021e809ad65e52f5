import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createConnection } from "mysql2/promise";
import { Client } from "pg";
import type { Clock } from "../../src/clock.ts";
import type { Store, StoreFactory } from "../../src/store.ts";
import { mysql } from "../../src/stores/mysql/index.ts";
import { postgres } from "../../src/stores/postgres/index.ts";
import { sqlite } from "../../src/stores/sqlite/index.ts";
import { testbed } from "../../testbed/index.ts";
import { overNetwork } from "../behaviour/over-network.ts";
import { newFolder } from "../behaviour/stores.ts";

export type Kind = "text" | "number" | "flag" | "texts";

export interface Column {
  readonly table: string;
  readonly column: string;
  readonly kind: Kind;
}

/** A store, and somebody else who writes to its tables. */
export interface Vandal {
  readonly store: StoreFactory;
  columns(): Promise<readonly Column[]>;
  /** Writes to all rows that there are. Rejects where the column does not take it. */
  write(column: Column, value: string | number): Promise<void>;
  close(): Promise<void>;
}

export interface VandalKind {
  readonly name: string;
  readonly skip: string | false;
  readonly isLocal: boolean;
  open(): Promise<Vandal>;
}

/** Who finds nothing there has no store at all. Neither has one whose server has no number left to give: those it counts itself stay. */
// MySQL's lines are such: they number the queues and names that all jobs refer to.
const foundations = /(namespaces|boots|migrations|schema|_lines)$/;

const postgresServer = await testbed.postgres();
const mysqlServer = await testbed.mysql();
let places = 0;

export const vandals: readonly VandalKind[] = [
  { name: "sqlite", skip: false, isLocal: true, open: openSqlite },
  { name: "postgres", skip: postgresServer.skip, isLocal: false, open: openPostgres },
  { name: "mysql", skip: mysqlServer.skip, isLocal: false, open: openMysql },
];

async function openSqlite(): Promise<Vandal> {
  const path = join(newFolder(), "jobs.db");
  const within = <T>(use: (database: DatabaseSync) => T): T => {
    const database = new DatabaseSync(path);
    try {
      return use(database);
    } finally {
      database.close();
    }
  };
  return {
    store: sqlite(path),
    columns: async () =>
      within((database) => {
        const rows = database
          .prepare(
            `select m.name as "table", c.name as "column", c.type from sqlite_master m, pragma_table_info(m.name) c
             where m.type = 'table' and m.name like 'escapement%' order by 1, c.cid`,
          )
          .all();
        return rows
          .map((row) => ({
            table: String(row["table"]),
            column: String(row["column"]),
            kind: kindOf(String(row["type"])),
          }))
          .filter(isTarget);
      }),
    write: async ({ table, column }, value) =>
      within((database) => {
        database.prepare(`update ${table} set "${column}" = ?`).run(value);
      }),
    close: async () => undefined,
  };
}

async function openPostgres(): Promise<Vandal> {
  const client = new Client({ connectionString: postgresServer.url });
  await client.connect();
  const store = inNamespace((clock) => postgres({ url: postgresServer.url, clock, connections: 3 }));
  return {
    store,
    columns: async () => {
      const { rows } = await client.query<{ table: string; column: string; type: string }>(
        `select table_name as "table", column_name as "column", data_type as type from information_schema.columns
         where table_schema = 'escapement' and table_name <> 'all_jobs' and is_generated = 'NEVER' and is_identity = 'NO'
         order by 1, ordinal_position`,
      );
      return rows.map(({ type, ...column }) => ({ ...column, kind: kindOf(type) })).filter(isTarget);
    },
    write: async ({ table, column, kind }, value) => {
      const given = kind === "flag" ? value === 1 : kind === "texts" ? [String(value), null] : value;
      await client.query(`update escapement.${table} set "${column}" = $1`, [given]);
    },
    close: async () => {
      await client.end();
      await store.closeAll();
    },
  };
}

async function openMysql(): Promise<Vandal> {
  const connection = await createConnection(mysqlServer.url);
  const store = inNamespace((clock) => mysql({ url: mysqlServer.url, clock }));
  return {
    store,
    columns: async () => {
      const [rows] = await connection.query(
        `select table_name, column_name, data_type from information_schema.columns
         where table_schema = database() and table_name like 'escapement%' and extra not like '%auto_increment%' order by 1, ordinal_position`,
      );
      return (rows as Record<string, unknown>[])
        .map((row) => {
          const [table, column, type] = Object.values(row).map(String);
          return { table: table ?? "", column: column ?? "", kind: kindOf(type ?? "") };
        })
        .filter(isTarget);
    },
    write: async ({ table, column }, value) => {
      await connection.query(`update ${table} set \`${column}\` = ?`, [value]);
    },
    close: async () => {
      await connection.end();
      await store.closeAll();
    },
  };
}

function isTarget({ table }: Column): boolean {
  return !foundations.test(table);
}

function kindOf(type: string): Kind {
  if (/array/i.test(type)) return "texts";
  if (/bool/i.test(type)) return "flag";
  return /int/i.test(type) ? "number" : "text";
}

/** A namespace for each, for making the tables takes longer than a case; and one handle, for connecting does, too. */
function inNamespace(make: (clock: Clock) => StoreFactory): StoreFactory & { closeAll(): Promise<void> } {
  const place = ++places;
  let opened: Promise<Store> | null = null;
  const factory = overNetwork((clock) => ({
    open: async (context) => {
      const namespace = `${context.namespace} ${place}`;
      opened ??= make(clock).open({ ...context, namespace });
      return leftOpen(await opened);
    },
  }));
  return { open: factory.open, closeAll: async () => (await opened)?.close() };
}

function leftOpen(store: Store): Store {
  return new Proxy(store, {
    get(_, key) {
      if (key === "close") return async () => undefined;
      const value: unknown = Reflect.get(store, key, store);
      return typeof value === "function" ? value.bind(store) : value;
    },
  });
}
