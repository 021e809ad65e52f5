import { EscapementError } from "../../errors.ts";
import type { PendingMigration } from "../../store/opening.ts";
import type { PgClient } from "./connection/client.ts";
import { literal, quote } from "./connection/encode.ts";
import { answerOf } from "./connection/link.ts";
import { sqlState } from "./errors.ts";
import { numberOf } from "./rows.ts";
import { functionsFor, installSql } from "./schema/functions.ts";
import { type Migration, migrations } from "./schema/migrations.ts";
import { type Layout, type SchemaState, stateSql, toState } from "./schema/state.ts";

const ledger = `create table if not exists migrations (
  version integer primary key,
  name text not null,
  breaking boolean not null,
  applied_at timestamptz not null default now()
)`;

function record({ version, name, breaking }: Migration): string {
  return `insert into migrations (version, name, breaking) values (${version}, ${literal(name)}, ${breaking})`;
}

/** If several nodes start at once, one creates the schema and the others wait, only until the transaction ends. */
function lock(schema: string): string {
  return `select pg_advisory_xact_lock(hashtextextended(${literal(`escapement ${schema}`)}, 0))`;
}

function script(statements: readonly string[]): string {
  return `${["begin", ...statements, "commit"].join(";\n")};\n`;
}

/** A migration as you would run it by hand: in its own transaction, with its ledger entry. */
function asScript(migration: Migration, schema: string): PendingMigration {
  const sql = script([
    lock(schema),
    `create schema if not exists ${quote(schema)}`,
    `set local search_path = ${quote(schema)}`,
    ledger,
    migration.sql.trim().replace(/;$/, ""),
    record(migration),
  ]);
  return { name: migration.name, sql };
}

function functionsAsScript({ schema, functions }: Pick<Layout, "schema" | "functions">): PendingMigration {
  return { name: functions.schema, sql: script([lock(schema), installSql(schema, functions)]) };
}

/** Everything that creates a new schema, for people who run migrations by hand. */
export function migrationSql(schema = "escapement"): string {
  return [
    ...migrations.map((migration) => asScript(migration, schema)),
    functionsAsScript({ schema, functions: functionsFor(schema) }),
  ]
    .map(({ sql }) => sql)
    .join("\n");
}

/** What {@link migrate} would run now. */
export function pendingMigrations(layout: Layout, state: SchemaState): readonly PendingMigration[] {
  return [
    ...migrations
      .filter(({ version }) => version > state.version)
      .map((migration) => asScript(migration, layout.schema)),
    ...(state.hasFunctions ? [] : [functionsAsScript(layout)]),
  ];
}

/** Brings tables and functions up to date and returns the number of the namespace, all in one transaction. */
export async function migrate(client: PgClient, layout: Layout): Promise<number> {
  const { schema, namespace, functions, place } = layout;
  const ask = async (sql: string, values: readonly string[] = []): Promise<unknown> =>
    answerOf(await client.query(sql, values));
  const exists = async (name: string): Promise<boolean> =>
    (await ask("select to_json(to_regnamespace($1) is not null)::text as answer", [quote(name)])) === true;
  await client.query("begin isolation level read committed");
  await client.query(lock(schema));
  // The user may lack the right to create a schema that is there already.
  if (!(await exists(schema)))
    await client
      .query(`create schema ${quote(schema)}`)
      .catch((error: unknown) => explain(error, schema, place));
  await client.query(`set local search_path = ${quote(schema)}`);
  await client.query(ledger);
  const version = numberOf(await ask("select coalesce(max(version), 0)::text as answer from migrations"));
  for (const migration of migrations) {
    if (migration.version <= version) continue;
    await client.query(migration.sql);
    await client.query(record(migration));
  }
  await client.query("insert into namespaces (name) values ($1) on conflict do nothing", [namespace]);
  // Another node may have installed them while this one waited for the lock.
  const { ns, hasFunctions } = toState(await ask(stateSql(layout)), place);
  if (!hasFunctions)
    await client
      .query(installSql(schema, functions))
      .catch((error: unknown) => explain(error, functions.schema, place));
  await client.query("commit");
  return numberOf(ns);
}

/** A user who may not create schemas needs one who may. */
function explain(error: unknown, schema: string, place: string): never {
  if (sqlState(error) !== "42501") throw error;
  throw new EscapementError(
    "store-unmigrated",
    `Postgres store ${place}: this user may not create the schema ${schema}, which this version of escapement needs; run "escapement migrate" as a user ` +
      `with CREATE on the database, run what "escapement migrate --dry-run" prints, or grant CREATE on the database to this user`,
    { cause: error },
  );
}
