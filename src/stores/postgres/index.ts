import type { Clock } from "../../clock.ts";
import { type Duration, parseDuration } from "../../duration.ts";
import { describe, EscapementError } from "../../errors.ts";
import { checkInteger, checkKnown } from "../../options.ts";
import type { Capabilities, StoreContext, StoreFactory } from "../../store/opening.ts";
import type { Store } from "../../store/store.ts";
import { openPool, type PgPool } from "./connection/client.ts";
import { answerOf, Link } from "./connection/link.ts";
import { parseUrl } from "./connection/url.ts";
import { durabilitySettings } from "./health.ts";
import { recordOf } from "./rows.ts";
import { functionsFor, maxSchemaLength } from "./schema/functions.ts";
import { openPostgresStore } from "./store.ts";

export type { PgClient, PgNotification, PgPool } from "./connection/client.ts";
export { type PostgresInboxOptions, postgresInbox } from "./inbox.ts";
export { migrationSql } from "./migrate.ts";

export interface PostgresOptions {
  /**
   * Where the server is: `postgres://user:password@host:5432/database`. Either this or {@link pool}. The options `schema`, `connections`,
   * `callTimeout` and `listen` can be passed as URL parameters: `?schema=jobs`.
   */
  readonly url?: string;
  /** An existing `pg` pool of the application. Closing the store does not end it. */
  readonly pool?: PgPool;
  /** The schema that holds the store's tables, and nothing else. Its functions are in schemas whose names begin with this one and `_fn_`. @default "escapement" */
  readonly schema?: string;
  /** Maximum number of connections that the store opens; with {@link pool}, how many it may take from the pool. @default 10 */
  readonly connections?: number;
  /** How long one call may take before its connection is discarded. @default "10s" */
  readonly callTimeout?: Duration;
  /**
   * Whether to keep a connection open for the server's notices, which wake this process when another one enqueues. It cannot work through a
   * pooler in transaction mode. @default true if the connection leads straight to the server
   */
  readonly listen?: boolean;
  /** The store's clock, for tests and simulations. @default the server's own */
  readonly clock?: Clock;
}

interface Resolved {
  readonly url: string | null;
  /** For messages: where the server is. */
  readonly place: string;
  readonly pool: PgPool | null;
  readonly schema: string;
  readonly connections: number;
  readonly callTimeoutMs: number;
  readonly listen: boolean | null;
  readonly clock: Clock | null;
}

/**
 * Keeps everything in one schema of a Postgres database, version 13 or later.
 *
 * Inside `tx(fn)` the handle is a `pg` client in an open transaction: write with its `query`. `enqueue(…, { tx })` takes an open
 * transaction of `pg`, `postgres`, Drizzle, Kysely, Knex or Prisma.
 *
 * @example
 * const app = createEscapement({ store: postgres("postgres://localhost/app"), jobs: [invoice] });
 */
export function postgres(urlOrOptions: string | PostgresOptions): StoreFactory {
  const options = resolve(urlOrOptions);
  return { open: (context) => open(options, context) };
}

/** Opens a store by its address, for the heartbeat's thread. */
export function openStore(options: unknown, context: StoreContext): Promise<Store> {
  return open(resolve(options), context);
}

async function open(options: Resolved, context: StoreContext): Promise<Store> {
  const { url, schema, connections, callTimeoutMs, clock, place } = options;
  const pool = options.pool ?? (await openPool({ url: url ?? "", connections, callTimeoutMs }));
  const link = new Link({ pool, owned: options.pool === null, callTimeoutMs, place });
  try {
    const address =
      url === null || clock !== null
        ? null
        : {
            module: import.meta.url,
            options: { url, schema, connections: 2, callTimeout: callTimeoutMs, listen: false },
          };
    return await openPostgresStore({
      link,
      context,
      schema,
      functions: functionsFor(schema),
      clock,
      address,
      capabilities: await probe(link, options.listen),
      // Two stay free, for the worker's own trips and for listening.
      transactions: Math.max(1, connections - 2),
    });
  } catch (error) {
    await link.close();
    throw error;
  }
}

/** What this server can do over this connection. */
async function probe(link: Link, listen: boolean | null): Promise<Capabilities> {
  const settings = durabilitySettings.map((name) => `'${name}', current_setting('${name}')`).join(", ");
  const sql = `select json_build_object('pid', pg_backend_pid(), 'isolation', current_setting('default_transaction_isolation'),
    ${settings})::text as answer`;
  const { answer, announced } = await link.borrow(async (client) => ({
    answer: recordOf(answerOf(await link.within(client.query(sql), "an answer"))),
    announced: client.processID ?? null,
  }));
  if (answer["isolation"] !== "read committed") {
    throw new EscapementError(
      "store-unsupported",
      `Postgres store ${link.place}: expected default_transaction_isolation to be "read committed", got ${describe(answer["isolation"])}; ` +
        "set it for the store's user: ALTER ROLE … SET default_transaction_isolation = 'read committed'",
    );
  }
  // A pooler announces a process id that it made up: behind it, each statement may reach a different server process.
  const isDirect = announced === answer["pid"];
  if (isDirect) link.prepareOften();
  const durable = answer["fsync"] === "on" && answer["synchronous_commit"] !== "off";
  return {
    transactions: true,
    listen: listen ?? (announced === null || isDirect),
    acrossSlots: true,
    timePrecisionMs: 1,
    durability: durable ? "full" : "weak",
  };
}

const known = ["url", "pool", "schema", "connections", "callTimeout", "listen", "clock"] as const;

function resolve(given: unknown): Resolved {
  const options = typeof given === "string" ? { url: given } : given;
  if (typeof options !== "object" || options === null) {
    throw new EscapementError(
      "invalid-option",
      "expected the URL of a Postgres server, or an object with a url or a pool",
    );
  }
  checkKnown(options, known, "postgres");
  const parsed = "url" in options && options.url != null ? parseUrl(options.url) : null;
  const {
    url = null,
    pool = null,
    schema = "escapement",
    connections = 10,
    callTimeout = "10s",
    listen = null,
    clock = null,
  } = { ...inUrl(parsed?.options ?? {}), ...options } as PostgresOptions;
  if ((url === null) === (pool === null)) {
    throw new EscapementError("invalid-option", "expected postgres to get either a url or a pool, not both");
  }
  if (
    typeof schema !== "string" ||
    !/^[A-Za-z_][\w$]*$/.test(schema) ||
    schema.length > maxSchemaLength ||
    schema === "public" ||
    schema.startsWith("pg_")
  ) {
    throw new EscapementError(
      "invalid-option",
      `expected postgres's schema to be the name of a separate schema, with letters, digits and _ and at most ${maxSchemaLength} characters, got ${describe(schema)}`,
    );
  }
  if (listen !== null && typeof listen !== "boolean") {
    throw new EscapementError(
      "invalid-option",
      `expected postgres's listen to be true or false, got ${describe(listen)}`,
    );
  }
  return {
    url: parsed?.url ?? null,
    place: parsed?.place ?? "on the given pool",
    pool,
    schema,
    connections: checkInteger(connections, 2, 1_000, "postgres's connections"),
    callTimeoutMs: checkInteger(
      parseDuration(callTimeout, "postgres's callTimeout"),
      10,
      3_600_000,
      "postgres's callTimeout",
    ),
    listen,
    clock,
  };
}

/** URL parameters are strings; errors name them like the options that they set. */
function inUrl(given: Readonly<Record<string, string>>): Readonly<Record<string, unknown>> {
  const { connections, listen } = given;
  return {
    ...given,
    ...(connections === undefined ? {} : { connections: Number(connections) }),
    ...(listen === "true" || listen === "false" ? { listen: listen === "true" } : {}),
  };
}
