import { EscapementError } from "../../errors.ts";

/** What this store needs of a connection of `pg`; a caller's own pool gives the same. */
export interface PgClient {
  /** Present on pg's own clients: the process that the server announced at the start. A pooler announces one of its own making. */
  readonly processID?: number | null;
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
  release(destroy?: boolean | Error): void;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "notification", listener: (message: PgNotification) => void): unknown;
  removeListener(event: "error", listener: (error: Error) => void): unknown;
  removeListener(event: "notification", listener: (message: PgNotification) => void): unknown;
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
