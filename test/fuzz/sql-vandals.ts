import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createConnection } from "mysql2/promise";
import { Client } from "pg";
import type { Clock } from "../../src/clock.ts";
import type { StoreFactory } from "../../src/store/opening.ts";
import type { Store } from "../../src/store/store.ts";
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
  /** Whether the table says of each row which namespace it belongs to. */
  readonly hasNamespace: boolean;
}

/** A store, and somebody else who writes to its tables. */
export interface Vandal {
  readonly store: StoreFactory;
  columns(): Promise<readonly Column[]>;
  /** Writes to all rows of the store's namespace, or of the table if that has none. Rejects if the column does not take the value. */
  write(column: Column, value: string | number): Promise<void>;
  close(): Promise<void>;
}

export interface VandalKind {
  readonly name: string;
  readonly skip: string | false;
  open(): Promise<Vandal>;
}

/** Who finds nothing there has no store at all. Neither has one whose server has no number left to give: those it counts itself stay. */
// MySQL's lines are such: they number the queues and names that all jobs refer to.
const foundations = /(namespaces|boots|migrations|schema|_lines)$/;

const postgresServer = await testbed.postgres();
const mysqlServer = await testbed.mysql();
let places = 0;

export const vandals: readonly VandalKind[] = [
  { name: "sqlite", skip: false, open: openSqlite },
  { name: "postgres", skip: postgresServer.skip, open: openPostgres },
  { name: "mysql", skip: mysqlServer.skip, open: openMysql },
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
        return targetsOf(
          rows.map((row) => [String(row["table"]), String(row["column"]), String(row["type"])]),
        );
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
         where table_schema = 'escapement' and is_generated = 'NEVER' and is_identity = 'NO'
         order by 1, ordinal_position`,
      );
      return targetsOf(rows.map(({ table, column, type }) => [table, column, type]));
    },
    write: async ({ table, column, kind, hasNamespace }, value) => {
      const given = kind === "flag" ? value === 1 : kind === "texts" ? [String(value), null] : value;
      const own = hasNamespace ? "where ns = (select ns from escapement.namespaces where name = $2)" : "";
      const values = hasNamespace ? [given, store.namespace()] : [given];
      await client.query(`update escapement.${table} set "${column}" = $1 ${own}`, values);
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
      return targetsOf(
        (rows as Record<string, unknown>[]).map((row) => {
          const [table = "", column = "", type = ""] = Object.values(row).map(String);
          return [table, column, type];
        }),
      );
    },
    write: async ({ table, column, hasNamespace }, value) => {
      const own = hasNamespace ? "where ns = (select ns from escapement_namespaces where name = ?)" : "";
      await connection.query(`update ${table} set \`${column}\` = ? ${own}`, [value, store.namespace()]);
    },
    close: async () => {
      await connection.end();
      await store.closeAll();
    },
  };
}

function targetsOf(found: readonly [table: string, column: string, type: string][]): Column[] {
  const spaced = new Set(found.filter(([, column]) => column === "ns").map(([table]) => table));
  return found
    .filter(([table]) => !foundations.test(table))
    .map(([table, column, type]) => ({
      ...{ table, column },
      kind: kindOf(type),
      hasNamespace: spaced.has(table),
    }));
}

function kindOf(type: string): Kind {
  if (/array/i.test(type)) return "texts";
  if (/bool/i.test(type)) return "flag";
  return /int/i.test(type) ? "number" : "text";
}

interface OneStore extends StoreFactory {
  /** The name of its namespace, once it has been opened. */
  namespace(): string;
  closeAll(): Promise<void>;
}

/** A namespace for each, because creating the tables takes longer than a case; and one handle, because connecting does, too. */
function inNamespace(make: (clock: Clock) => StoreFactory): OneStore {
  const place = ++places;
  let namespace = "";
  let opened: Promise<Store> | null = null;
  const factory = overNetwork((clock) => ({
    open: async (context) => {
      namespace = `${context.namespace} ${place}`;
      opened ??= make(clock).open({ ...context, namespace });
      return leftOpen(await opened);
    },
  }));
  return {
    open: factory.open,
    namespace: () => namespace,
    closeAll: async () => (await opened)?.close(),
  };
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
