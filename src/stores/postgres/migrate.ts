import { EscapementError } from "../../errors.ts";
import type { PendingMigration } from "../../store.ts";
import type { PgClient } from "./client.ts";
import { answerOf, type Run } from "./link.ts";
import { migrationFiles } from "./migration-files.ts";
import { isRecord, numberOf, recordOf, textOf } from "./rows.ts";

interface Migration {
  readonly version: number;
  readonly name: string;
  /** An older library must not touch the schema after it: its file has a line `-- breaking`. */
  readonly breaking: boolean;
  readonly sql: string;
}

/** The numbered files, in their order; each with the files of the folder that has its name. */
export function readMigrations(): readonly Migration[] {
  const names = Object.keys(migrationFiles);
  return names
    .filter((name) => /^\d{4}-[^/]+\.sql$/.test(name))
    .map((name) => {
      const folder = name.replace(/\.sql$/, "/");
      const parts = [name, ...names.filter((part) => part.startsWith(folder))];
      const sql = parts.map((part) => migrationFiles[part]).join("\n");
      return { version: Number(name.slice(0, 4)), name, breaking: /^-- breaking$/m.test(sql), sql };
    });
}

export function quote(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`;
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

const ledger = `create table if not exists migrations (
  version integer primary key,
  name text not null,
  breaking boolean not null,
  applied_at timestamptz not null default now()
)`;

function record({ version, name, breaking }: Migration): string {
  return `insert into migrations (version, name, breaking) values (${version}, ${literal(name)}, ${breaking})`;
}

/** Of several nodes that start at once one makes the schema and the others wait: until the transaction ends, and no longer. */
function lock(schema: string): string {
  return `select pg_advisory_xact_lock(hashtextextended(${literal(`escapement ${schema}`)}, 0))`;
}

/** A migration as somebody would run it by hand: in a transaction of its own, with its entry in the ledger. */
function asScript(migration: Migration, schema: string): PendingMigration {
  const statements = [
    "begin",
    lock(schema),
    `create schema if not exists ${quote(schema)}`,
    `set local search_path = ${quote(schema)}`,
    ledger,
    migration.sql.trim().replace(/;$/, ""),
    record(migration),
    "commit",
  ];
  return { name: migration.name, sql: `${statements.join(";\n")};\n` };
}

/** Everything that makes a new schema, for those who run migrations by hand. */
export function migrationSql(schema = "escapement"): string {
  return readMigrations()
    .map((migration) => asScript(migration, schema).sql)
    .join("\n");
}

/** What {@link migrate} would run now. */
export async function pendingMigrations(
  run: Run,
  schema: string,
  place: string,
): Promise<readonly PendingMigration[]> {
  const version = await schemaVersion(run, schema, place);
  return readMigrations()
    .filter((migration) => migration.version > version)
    .map((migration) => asScript(migration, schema));
}

/** Brings the schema up to date and returns the number of the namespace, all in one transaction. */
export async function migrate(
  client: PgClient,
  schema: string,
  namespace: string,
  place: string,
): Promise<number> {
  const ask = async (sql: string, values: readonly string[] = []): Promise<unknown> =>
    answerOf(await client.query(sql, values));
  await client.query("begin isolation level read committed");
  await client.query(lock(schema));
  // Asking first spares a user who may not make schemas, where there is one already.
  const exists = await ask("select to_json(to_regnamespace($1) is not null)::text as answer", [
    quote(schema),
  ]);
  if (exists !== true) await client.query(`create schema ${quote(schema)}`);
  await client.query(`set local search_path = ${quote(schema)}`);
  const migrations = readMigrations();
  await client.query(ledger);
  const applied = recordOf(await ask(state(schema, migrations)));
  refuseNewer(applied, migrations, place);
  for (const migration of migrations) {
    if (migration.version <= numberOf(applied["version"])) continue;
    await client.query(migration.sql);
    await client.query(record(migration));
  }
  await client.query("insert into namespaces (name) values ($1) on conflict do nothing", [namespace]);
  const ns = numberOf(await ask("select ns::text as answer from namespaces where name = $1", [namespace]));
  await client.query("commit");
  return ns;
}

/** {version, newer}: the latest migration there, and the first breaking one that this library does not know. */
function state(schema: string, migrations: readonly Migration[]): string {
  const newest = migrations.at(-1)?.version ?? 0;
  return `select json_build_object('version', coalesce(max(version), 0), 'newer', (
      select json_build_array(version, name) from ${quote(schema)}.migrations where version > ${newest} and breaking order by version limit 1
    ))::text as answer from ${quote(schema)}.migrations`;
}

/** Refuses a schema that this library would misunderstand. */
function refuseNewer(
  applied: Readonly<Record<string, unknown>>,
  migrations: readonly Migration[],
  place: string,
): void {
  const { newer } = applied;
  if (!Array.isArray(newer)) return;
  throw new EscapementError(
    "store-newer",
    `Postgres store ${place}: its schema has version ${numberOf(newer[0])} (${textOf(newer[1])}), this library knows versions ` +
      `up to ${migrations.at(-1)?.version ?? 0}; upgrade escapement in this process`,
  );
}

/** The version of the schema, 0 where there is none; refuses one that this library would misunderstand. */
export async function schemaVersion(run: Run, schema: string, place: string): Promise<number> {
  const exists = await run("select to_json(to_regclass($1) is not null)::text as answer", [
    `${quote(schema)}.migrations`,
  ]);
  if (exists !== true) return 0;
  const migrations = readMigrations();
  const applied = await run(state(schema, migrations), []);
  if (!isRecord(applied)) return 0;
  refuseNewer(applied, migrations, place);
  return numberOf(applied["version"]);
}

/** The number of a namespace in a schema that is there; null where it has none yet. */
export async function findNamespace(run: Run, schema: string, namespace: string): Promise<number | null> {
  const answer = await run(
    `select coalesce(to_json((select ns from ${quote(schema)}.namespaces where name = $1)), 'null')::text as answer`,
    [namespace],
  );
  return answer === null ? null : numberOf(answer);
}

export function missingSchema(place: string, schema: string): never {
  throw new EscapementError(
    "store-unmigrated",
    `Postgres store ${place}: the schema ${schema}, or this namespace in it, is not there; check the address and the namespace, or run "escapement migrate" to make them`,
  );
}
