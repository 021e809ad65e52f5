import { EscapementError } from "../../errors.ts";
import type { PendingMigration } from "../../store/opening.ts";
import type { Connection } from "./connection/connection.ts";
import { migrationFiles } from "./migrations/files.ts";
import { numberOf, numberOrNull, textOf } from "./rows.ts";

interface Migration {
  readonly version: number;
  readonly name: string;
  /** An older library must not touch the schema after this one: its file has a line `-- breaking`. */
  readonly breaking: boolean;
  readonly sql: string;
}

/** The numbered files, in order. */
export function readMigrations(): readonly Migration[] {
  const files = Object.entries(migrationFiles).filter(([name]) => /^\d{4}-.+\.sql$/.test(name));
  return files.map(([name, sql]) => {
    return { version: Number(name.slice(0, 4)), name, breaking: /^-- breaking$/m.test(sql), sql };
  });
}

const ledger = `create table if not exists escapement_migrations (
  version integer primary key,
  name text not null,
  breaking integer not null,
  applied_at integer not null
) strict`;

/** Brings the schema up to date. It runs inside one IMMEDIATE transaction, so only one of several processes does it. */
export function migrate(connection: Connection, path: string, now: number): void {
  const migrations = readMigrations();
  connection.run(ledger);
  refuseNewer(connection, path, migrations);
  const version = schemaVersion(connection);
  for (const migration of migrations) {
    if (migration.version <= version) continue;
    connection.database.exec(migration.sql);
    connection.run(
      "insert into escapement_migrations (version, name, breaking, applied_at) values (?, ?, ?, ?)",
      migration.version,
      migration.name,
      migration.breaking ? 1 : 0,
      now,
    );
  }
}

/** What {@link migrate} would run, as scripts for running by hand. */
export function pendingMigrations(connection: Connection, now: number): readonly PendingMigration[] {
  const version = schemaVersion(connection);
  return readMigrations()
    .filter((migration) => migration.version > version)
    .map(({ name, sql, version: number, breaking }) => ({
      name,
      sql: [
        "begin immediate;",
        `${ledger};`,
        sql.trim(),
        `insert into escapement_migrations (version, name, breaking, applied_at) values (${number}, '${name}', ${breaking ? 1 : 0}, ${now});`,
        "commit;",
      ].join("\n"),
    }));
}

/** 0 if there is no schema yet. */
export function schemaVersion(connection: Connection): number {
  if (!hasLedger(connection)) return 0;
  return (
    numberOrNull(connection.get("select max(version) as version from escapement_migrations")?.["version"]) ??
    0
  );
}

/** Refuses a schema that this library would misunderstand. */
export function refuseNewer(connection: Connection, path: string, migrations: readonly Migration[]): void {
  const newest = migrations.at(-1)?.version ?? 0;
  const row = connection.get(
    "select version, name from escapement_migrations where version > ? and breaking = 1 order by version limit 1",
    newest,
  );
  if (row === undefined) return;
  throw new EscapementError(
    "store-newer",
    `SQLite store ${path}: its schema has version ${numberOf(row["version"])} (${textOf(row["name"])}), this library ` +
      `knows versions up to ${newest}; upgrade escapement in this process`,
  );
}

function hasLedger(connection: Connection): boolean {
  const sql = "select 1 from sqlite_schema where type = 'table' and name = 'escapement_migrations'";
  return connection.get(sql) !== undefined;
}
