import { EscapementError } from "../../errors.ts";

/** What this store needs of a connection of `pg`; a caller's own pool gives the same. */
export interface PgClient {
  /** Present on pg's own clients: the process that the server announced at the start. A pooler announces one of its own making. */
  readonly processID?: number | null;
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
  query(statement: PgStatement): Promise<{ readonly rows: readonly unknown[] }>;
  release(destroy?: boolean | Error): void;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "notification", listener: (message: PgNotification) => void): unknown;
  removeListener(event: "error", listener: (error: Error) => void): unknown;
  removeListener(event: "notification", listener: (message: PgNotification) => void): unknown;
}

/** With a name, the connection keeps it prepared under that. */
export interface PgStatement {
  readonly name?: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

export interface PgNotification {
  readonly channel: string;
  readonly payload?: string | undefined;
}

/** What this store needs of a pool of `pg`. */
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
    // The store's timers keep no process alive by themselves, and nor do its idle connections.
    allowExitOnIdle: true,
    application_name: "escapement",
  });
}

/** The client reads the URL again for each connection, and fails with errors of its own; it may carry a password, so it is not repeated. */
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

async function loadClient(): Promise<typeof import("pg")> {
  try {
    return await import("pg");
  } catch (error) {
    throw new EscapementError(
      "store-missing-client",
      "the Postgres store needs the package pg, which cannot be loaded; install it with: npm install pg",
      { cause: error },
    );
  }
}
