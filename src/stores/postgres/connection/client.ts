import { EscapementError } from "../../../errors.ts";
import { cannotLoad } from "../../../runtime/cannot-load.ts";

/** What this store needs from a `pg` connection; a caller's own pool provides the same. */
export interface PgClient {
  /** Present on pg's own clients: the process id that the server announced at the start. A pooler announces one that it made up. */
  readonly processID?: number | null;
  /** Present in newer versions of pg (8.23 has it): whether a statement is sent before the one before it is answered. */
  pipeline?: boolean;
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
  query(statement: PgStatement): Promise<{ readonly rows: readonly unknown[] }>;
  release(destroy?: boolean | Error): void;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "notification", listener: (message: PgNotification) => void): unknown;
  removeListener(event: "error", listener: (error: Error) => void): unknown;
  removeListener(event: "notification", listener: (message: PgNotification) => void): unknown;
}

/** With a name, the connection keeps the statement prepared under that name. */
export interface PgStatement {
  readonly name?: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

export interface PgNotification {
  readonly channel: string;
  readonly payload?: string | undefined;
}

/** What this store needs from a `pg` pool. */
export interface PgPool {
  connect(): Promise<PgClient>;
  end(): Promise<void>;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "connect", listener: (client: Pick<PgClient, "on">) => void): unknown;
}

export interface PoolPlan {
  readonly url: string;
  readonly connections: number;
  readonly callTimeoutMs: number;
}

/** Makes a pool with the client package, which is loaded only here. */
export async function openPool(plan: PoolPlan): Promise<PgPool> {
  const { default: pg } = await loadClient();
  checkUrl(pg, plan.url);
  return new pg.Pool({
    connectionString: plan.url,
    max: plan.connections,
    connectionTimeoutMillis: plan.callTimeoutMs,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    // Neither the store's timers nor its idle connections keep a process alive.
    allowExitOnIdle: true,
    application_name: "escapement",
  });
}

/** The client parses the URL again for each connection, and throws its own errors; the URL may hold a password, so it is not repeated. */
function checkUrl(pg: { Client: new (options: { connectionString: string }) => unknown }, url: string): void {
  try {
    new pg.Client({ connectionString: url });
  } catch (error) {
    const isMalformed = error instanceof URIError || (error instanceof TypeError && "code" in error);
    const why = isMalformed || !(error instanceof Error) ? "" : `: ${error.message}`;
    throw new EscapementError(
      "invalid-option",
      `expected postgres's url to be postgres://user:password@host:5432/database, with special characters percent-encoded (# is %23, / is %2F), got another string${why}`,
    );
  }
}

function loadClient(): Promise<typeof import("pg")> {
  return import("pg").catch(
    cannotLoad({ code: "store-missing-client", who: "the Postgres store", packages: ["pg"] }),
  );
}
