import { EscapementError } from "../../errors.ts";
import type { PendingMigration } from "../../store/opening.ts";
import type { Link, Tuple } from "./connection/link.ts";
import { fixed, now, setNow, sql } from "./connection/sql.ts";
import { isMissingTable } from "./errors.ts";
import { migrationFiles } from "./migrations/files.ts";
import { numberOf, textOf } from "./rows.ts";

interface Migration {
  readonly version: number;
  readonly name: string;
  /** An older library must not touch the schema after this one: its file has a line `-- breaking`. */
  readonly breaking: boolean;
  readonly statements: readonly string[];
}

/** How long a node waits for another one that is migrating. */
const lockSeconds = 60;

/** The numbered files, in order. */
function readMigrations(): readonly Migration[] {
  const files = Object.entries(migrationFiles).filter(([name]) => /^\d{4}-.+\.sql$/.test(name));
  return files.map(([name, text]) => {
    return {
      version: Number(name.slice(0, 4)),
      name,
      breaking: /^-- breaking$/m.test(text),
      statements: text
        .split(/;\s*$/m)
        .map((statement) => statement.trim())
        .filter((statement) => statement.replaceAll(/^--.*$/gm, "").trim() !== ""),
    };
  });
}

const ledger = `create table if not exists escapement_migrations (
  version int not null primary key,
  name varchar(255) not null,
  breaking tinyint not null,
  applied_at bigint not null
) engine = innodb`;

/** What {@link migrate} would run, as scripts for running by hand. */
export async function pendingMigrations(link: Link): Promise<readonly PendingMigration[]> {
  const applied = new Set((await appliedMigrations(link)).map(({ version }) => version));
  return migrationScripts(link.dialect.tablePrefix).filter(({ version }) => !applied.has(version));
}

/** All migrations as scripts, ledger entries included. They may be run again. */
export function migrationScripts(tablePrefix: string): (PendingMigration & { readonly version: number })[] {
  return readMigrations().map(({ version, name, breaking, statements }) => {
    const entry =
      `insert ignore into escapement_migrations (version, name, breaking, applied_at)\n` +
      `  values (${version}, '${name}', ${breaking ? 1 : 0}, unix_timestamp() * 1000)`;
    const script = [ledger, ...statements, entry].map((statement) => `${statement};\n`).join("\n");
    return { version, name, sql: script.replaceAll("escapement_", tablePrefix) };
  });
}

/**
 * Brings the schema up to date. The server commits each statement separately, so a named lock keeps other nodes out, and statements
 * may be run again after a process died between them.
 */
export async function migrate(link: Link, where: string): Promise<void> {
  // Named locks apply to the whole server, tables only to one database.
  const lock = sql`concat(left(database(), 32), ' ', ${link.dialect.tablePrefix}, 'migrate')`;
  const { rows } = await link.query(sql`select get_lock(${lock}, ${lockSeconds})`);
  if (rows[0]?.[0] !== 1) {
    throw new EscapementError(
      "store-busy",
      `MySQL store ${where}: another process has been migrating its schema for ${lockSeconds} s; try again when it is done`,
    );
  }
  try {
    await apply(link, where);
  } finally {
    await link.query(sql`select release_lock(${lock})`).catch(() => {});
  }
}

async function apply(link: Link, where: string): Promise<void> {
  link.write(fixed(ledger));
  const applied = await readLedger(link);
  refuseNewer(applied, where);
  for (const migration of readMigrations()) {
    if (applied.some(({ version }) => version === migration.version)) continue;
    for (const statement of migration.statements) link.write(fixed(statement));
    const { version, name, breaking } = migration;
    link.write(setNow(null));
    link.write(
      sql`insert into escapement_migrations (version, name, breaking, applied_at) values (${version}, ${name}, ${breaking}, ${now})`,
    );
  }
  await link.flush();
}

interface Applied {
  readonly version: number;
  readonly name: string;
  readonly breaking: boolean;
}

/** What has been applied so far; nothing if there is no schema yet. */
export async function appliedMigrations(link: Link): Promise<readonly Applied[]> {
  return readLedger(link).catch((error: unknown) => {
    if (isMissingTable(error)) return [];
    throw error;
  });
}

async function readLedger(link: Link): Promise<readonly Applied[]> {
  const { rows } = await link.query(
    sql`select version, name, breaking from escapement_migrations order by version`,
  );
  return rows.map((row: Tuple) => ({
    version: numberOf(row[0]),
    name: textOf(row[1]),
    breaking: numberOf(row[2]) !== 0,
  }));
}

/** Refuses a schema that this library would misunderstand. */
export function refuseNewer(applied: readonly Applied[], where: string): void {
  const newest = readMigrations().at(-1)?.version ?? 0;
  const newer = applied.find(({ version, breaking }) => version > newest && breaking);
  if (newer === undefined) return;
  throw new EscapementError(
    "store-newer",
    `MySQL store ${where}: its schema has version ${newer.version} (${newer.name}), this library knows versions up to ` +
      `${newest}; upgrade escapement in this process`,
  );
}
