import type { Clock } from "../../clock.ts";
import { describe, EscapementError } from "../../errors.ts";
import { checkInteger, checkKnown } from "../../options.ts";
import type { PendingMigration, StoreContext, StoreFactory } from "../../store/opening.ts";
import type { Store } from "../../store/store.ts";
import { type MysqlPool, targetOf } from "./connection/client.ts";
import { ForeignPool, OwnPool } from "./connection/pool.ts";
import { migrationScripts } from "./migrate.ts";
import { openMysqlStore } from "./store.ts";

export type { MysqlPool } from "./connection/client.ts";
export { type MysqlInboxOptions, mysqlInbox } from "./inbox.ts";

export interface MysqlOptions {
  /** `mysql://user:password@host:3306/database`, or the same with `mariadb:`; with `?ssl=true` for an encrypted connection. */
  readonly url?: string;
  /**
   * A mysql2 pool to take connections from, instead of a URL. With `multipleStatements: true` each call is one trip to the server,
   * without it each statement is one. A handler that blocks the event loop cannot renew its lease through the pool.
   */
  readonly pool?: MysqlPool;
  /**
   * Prefix of all table names.
   *
   * @default "escapement_"
   */
  readonly tablePrefix?: string;
  /**
   * Maximum number of open connections. Only with a URL.
   *
   * @default 10
   */
  readonly connections?: number;
  /**
   * How long the server may take to answer, in milliseconds. After that the connection is dropped, and the call fails as `store-unavailable`.
   *
   * @default 10000
   */
  readonly callTimeout?: number;
  /**
   * Whether claims skip rows that others have locked (`SKIP LOCKED`), or wait for them and check again.
   *
   * @default what the server supports: yes from MySQL 8.0.1 and MariaDB 10.6 on
   */
  readonly skipLocked?: boolean;
  /**
   * The store's clock, for tests and simulations.
   *
   * @default the server's own
   */
  readonly clock?: Clock;
}

const known = ["url", "pool", "tablePrefix", "connections", "callTimeout", "skipLocked", "clock"];

/**
 * Keeps everything in a database of MySQL 8 or MariaDB 10.6 and later.
 *
 * @example
 * const app = createEscapement({ store: mysql("mysql://user:password@localhost/app"), jobs: [invoice] });
 */
export function mysql(urlOrOptions: string | MysqlOptions): StoreFactory {
  const options = resolve(urlOrOptions);
  return { open: (context) => openStore(options, context) };
}

/** Opens a store by its address, for the heartbeat's thread. */
export async function openStore(given: unknown, context: StoreContext): Promise<Store> {
  const options = resolve(given);
  const { tablePrefix, callTimeout, skipLocked, clock, url } = options;
  const connections = connectionsOf(options);
  const reachable = url !== null && clock === null;
  const address = { module: import.meta.url, options: definedOf(options) };
  try {
    return await openMysqlStore(
      { connections, tablePrefix, context, clock, skipLocked },
      reachable ? address : null,
    );
  } catch (error) {
    await connections.close();
    throw error;
  }

  function connectionsOf({ pool, connections: size }: Resolved): OwnPool | ForeignPool {
    if (pool !== null) return new ForeignPool(pool, { tablePrefix, timeoutMs: callTimeout });
    return new OwnPool({ target: targetOf(url ?? ""), size, tablePrefix, timeoutMs: callTimeout });
  }
}

/** Everything that `migrate` runs, for teams that run it by hand. Each script may be run again. */
export function migrationSql(options: { readonly tablePrefix?: string } = {}): readonly PendingMigration[] {
  return migrationScripts(checkPrefix(options.tablePrefix ?? defaultPrefix)).map(({ name, sql }) => ({
    name,
    sql,
  }));
}

interface Resolved {
  readonly url: string | null;
  readonly pool: MysqlPool | null;
  readonly tablePrefix: string;
  readonly connections: number;
  readonly callTimeout: number;
  readonly skipLocked: boolean | null;
  readonly clock: Clock | null;
}

const defaultPrefix = "escapement_";

function resolve(given: unknown): Resolved {
  const options = typeof given === "string" ? { url: given } : given;
  if (typeof options !== "object" || options === null) {
    throw new EscapementError(
      "invalid-option",
      "expected the URL of a MySQL database, or an object with url or pool",
    );
  }
  checkKnown(options, known, "mysql");
  const { url, pool, tablePrefix, connections, callTimeout, skipLocked, clock }: MysqlOptions = options;
  if ((url == null) === (pool == null)) {
    throw new EscapementError("invalid-option", "expected mysql to get either a url or a pool");
  }
  if (url != null) targetOf(url);
  if (skipLocked != null && typeof skipLocked !== "boolean") {
    throw new EscapementError(
      "invalid-option",
      `expected mysql's skipLocked to be true or false, got ${describe(skipLocked)}`,
    );
  }
  return {
    url: url ?? null,
    pool: pool ?? null,
    tablePrefix: checkPrefix(tablePrefix ?? defaultPrefix),
    connections: checkInteger(connections ?? 10, 2, 1_000, "mysql's connections"),
    callTimeout: checkInteger(callTimeout ?? 10_000, 100, 3_600_000, "mysql's callTimeout"),
    skipLocked: skipLocked ?? null,
    clock: clock ?? null,
  };
}

function checkPrefix(value: unknown): string {
  if (typeof value === "string" && /^[a-z][a-z0-9_]{0,29}$/i.test(value)) return value;
  throw new EscapementError(
    "invalid-option",
    `expected mysql's tablePrefix to be 1 to 30 letters, digits and underscores, got ${describe(value)}`,
  );
}

/** What can be sent to a thread. */
function definedOf(options: Resolved): object {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== null));
}
