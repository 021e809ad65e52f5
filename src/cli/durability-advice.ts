import type { AppHealth } from "../client/client.ts";

type Details = Readonly<Record<string, string>>;

/** What each kind of store needs, where nothing more is known of it. */
const general = {
  SQLite: 'open it with durability: "full"',
  Redis: "appendonly yes, appendfsync always",
  Postgres: "synchronous_commit = on, fsync = on",
  MySQL: "innodb_flush_log_at_trx_commit = 1, and sync_binlog = 1 if there is a binary log",
} as const;

/** What to change, so that acknowledged writes survive a power failure. */
export function durabilityAdvice({
  engine,
  details,
  capabilities,
}: Pick<AppHealth, "engine" | "details" | "capabilities">): string {
  if (capabilities.durability === "none")
    return "keep jobs that matter in a store on disk: SQLite in a file, Postgres, MySQL or Redis";
  if (/^SQLite\b/.test(engine)) return general.SQLite;
  if (/^(Redis|Valkey)\b/.test(engine)) return forRedis(details);
  if (/^PostgreSQL\b/.test(engine)) return forPostgres(details);
  if (/^(MySQL|MariaDB)\b/.test(engine)) return forMysql(details);
  const each = Object.entries(general).map(([name, what]) => `${name}: ${what}`);
  return `change what the server does at a commit; ${each.join("; ")}`;
}

function forRedis(details: Details): string {
  const { appendonly, appendfsync, maxmemory = "unknown", mode } = details;
  if (appendonly === "unknown" || appendfsync === "unknown")
    return `set ${general.Redis}, and let this user run CONFIG GET, which is how the store knows`;
  const wrong = [
    ...(appendonly === "yes" ? [] : ["appendonly yes"]),
    ...(appendfsync === "always" ? [] : ["appendfsync always"]),
    ...(details["maxmemory-policy"] === "noeviction" || ["0", "unknown"].includes(maxmemory)
      ? []
      : ["maxmemory-policy noeviction"]),
  ];
  if (wrong.length > 0) return `set in redis.conf or with CONFIG SET: ${wrong.join(", ")}`;
  return `no setting helps: in mode ${mode} a failover promotes a replica that lags behind; keep jobs that must survive it on a single server, or in an SQL store`;
}

function forPostgres(details: Details): string {
  const off = ["synchronous_commit", "fsync"].filter((name) => details[name] === "off");
  if (off.length === 0) return `set ${general.Postgres}`;
  return `set ${off.map((name) => `${name} = on`).join(", ")} in postgresql.conf, or for the role or the database of the store`;
}

function forMysql(details: Details): string {
  const binlog = /sync_binlog (\d+)/.exec(details["log_bin"] ?? "")?.[1];
  const wrong = [
    ...(details["innodb_flush_log_at_trx_commit"] === "1" ? [] : ["innodb_flush_log_at_trx_commit = 1"]),
    ...(binlog === undefined || binlog === "1" ? [] : ["sync_binlog = 1"]),
  ];
  return wrong.length === 0
    ? `set ${general.MySQL}`
    : `set in my.cnf or with SET GLOBAL: ${wrong.join(", ")}`;
}
