import type { Health } from "../../store/opening.ts";
import type { Link } from "./connection/link.ts";
import { sql } from "./connection/sql.ts";
import { appliedMigrations, migrationScripts } from "./migrate.ts";
import { numberOf, textOf } from "./rows.ts";

/** The server settings that decide about acknowledged writes, and that an operator may want to know. */
interface Settings {
  readonly version: string;
  readonly isMariadb: boolean;
  readonly flushLog: number;
  readonly binlog: boolean;
  readonly syncBinlog: number;
  readonly binlogFormat: string;
  readonly doublewrite: boolean;
  readonly maxPacket: number;
  readonly readOnly: boolean;
}

export async function readSettings(link: Link): Promise<Settings> {
  const { rows } = await link.query(
    sql`select version(), @@version_comment, @@innodb_flush_log_at_trx_commit, @@log_bin, @@sync_binlog, @@binlog_format,
      @@innodb_doublewrite, @@max_allowed_packet, @@read_only`,
  );
  const row = rows[0] ?? [];
  const version = textOf(row[0]);
  return {
    version,
    isMariadb: /mariadb/i.test(`${version} ${textOf(row[1])}`),
    flushLog: numberOf(row[2]),
    binlog: numberOf(row[3]) !== 0,
    syncBinlog: numberOf(row[4]),
    binlogFormat: textOf(row[5]),
    doublewrite: !["0", "OFF"].includes(String(row[6])),
    maxPacket: numberOf(row[7]),
    readOnly: numberOf(row[8]) !== 0,
  };
}

/** An acknowledged write survives a power failure only if the log, and the binary log with it, are synced at each commit. */
export function durabilityOf({ flushLog, binlog, syncBinlog }: Settings): "full" | "weak" {
  return flushLog === 1 && (!binlog || syncBinlog === 1) ? "full" : "weak";
}

export async function health(session: HealthSession, where: string): Promise<Health> {
  const { link, skipLocked } = session;
  const settings = await readSettings(link);
  const applied = await appliedMigrations(link);
  return {
    now: new Date(session.now),
    engine: `${settings.isMariadb ? "MariaDB" : "MySQL"} ${settings.version}`,
    schemaVersion: applied.at(-1)?.version ?? 0,
    details: {
      server: where,
      durability: durabilityOf(settings),
      innodb_flush_log_at_trx_commit: String(settings.flushLog),
      log_bin: settings.binlog ? `on, sync_binlog ${settings.syncBinlog}, ${settings.binlogFormat}` : "off",
      innodb_doublewrite: settings.doublewrite ? "on" : "off",
      max_allowed_packet: String(settings.maxPacket),
      read_only: settings.readOnly ? "on" : "off",
      "claims skip locked rows": skipLocked ? "yes" : "no",
    },
    problems: [...problemsOf(settings), ...(applied.length === 0 ? [] : await missingIndexes(link))],
  };
}

interface HealthSession {
  readonly link: Link;
  readonly now: number;
  readonly skipLocked: boolean;
}

function problemsOf(settings: Settings): string[] {
  const problems: string[] = [];
  if (settings.flushLog !== 1) {
    problems.push(
      `innodb_flush_log_at_trx_commit is ${settings.flushLog}: a power failure may undo acknowledged writes; set it to 1`,
    );
  }
  if (settings.binlog && settings.syncBinlog !== 1) {
    problems.push(
      `sync_binlog is ${settings.syncBinlog}: after a power failure replicas may differ; set it to 1`,
    );
  }
  if (settings.binlog && settings.binlogFormat === "STATEMENT") {
    problems.push("binlog_format is STATEMENT, which does not support READ COMMITTED; set it to ROW");
  }
  if (settings.readOnly) problems.push("the server is read-only; use the primary");
  return problems;
}

/** Indexes that the migrations create and that are missing now. */
async function missingIndexes(link: Link): Promise<string[]> {
  const { tablePrefix } = link.dialect;
  const { rows } = await link.query(
    sql`select distinct index_name from information_schema.statistics where table_schema = database()`,
  );
  const present = new Set(rows.map((row) => textOf(row[0])));
  const made = migrationScripts(tablePrefix).flatMap(({ sql: script }) => [
    ...script.matchAll(/^\s+(?:unique )?key (\w+) \(/gm),
  ]);
  return made
    .flatMap(([, name]) => (name === undefined || present.has(name) ? [] : name))
    .map((name) => `the index ${name} is missing: recreate it as in migrations/0001-core.sql`);
}

/** SKIP LOCKED came with MySQL 8.0.1 and MariaDB 10.6. */
export function knowsSkipLocked({ version, isMariadb }: Settings): boolean {
  const [major = 0, minor = 0] = version.split(".").map((part) => Number.parseInt(part, 10));
  return isMariadb ? major > 10 || (major === 10 && minor >= 6) : major >= 8;
}
