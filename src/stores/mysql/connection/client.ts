import { EscapementError } from "../../../errors.ts";
import { encodeLogin } from "../../../options.ts";
import { cannotLoad } from "../../../runtime/cannot-load.ts";

/** What the store needs from a mysql2 connection, in its callback form. */
export interface RawConnection {
  readonly config?: { readonly multipleStatements?: boolean };
  query(
    options: { readonly sql: string; readonly rowsAsArray: boolean },
    callback: (error: Error | null, result: unknown) => void,
  ): unknown;
  connect(callback: (error: Error | null) => void): void;
  on(event: "error", listener: (error: Error) => void): unknown;
  destroy(): void;
  end(callback: (error?: unknown) => void): void;
  /** The same connection in its promise form. */
  promise(): object;
}

/** A connection that belongs to a pool. */
export interface PooledConnection extends RawConnection {
  release(): void;
}

/** What the store needs from a mysql2 pool, in its callback form. */
export interface RawPool {
  readonly config?: { readonly connectionLimit?: number };
  getConnection(callback: (error: Error | null, connection: PooledConnection) => void): void;
}

/** A pool of `mysql2`, or of `mysql2/promise`, which wraps the former. */
export type MysqlPool = RawPool | { readonly pool: RawPool };

interface Mysql2 {
  createConnection(options: object): RawConnection;
}

/** Loads the client, an optional dependency: only users of this store need it. */
export async function loadClient(): Promise<Mysql2> {
  const { default: mysql2 } = await import("mysql2").catch(
    cannotLoad({ code: "store-missing-client", who: "the MySQL store", packages: ["mysql2"] }),
  );
  return mysql2 as unknown as Mysql2;
}

export interface Target {
  /** Host, port and database, for messages; without user and password. */
  readonly where: string;
  readonly config: object;
}

/** What both URL forms accept: `mysql://user:password@host:3306/database?ssl=true&socketPath=…`. */
export function targetOf(url: string): Target {
  const parsed = parse(url);
  const database = decode(parsed.pathname.slice(1));
  if (database === "") throw wrong("to name a database, as in mysql://user:password@host:3306/database");
  const host = parsed.hostname.replace(/^\[|\]$/g, "") || "localhost";
  const port = Number(parsed.port || 3306);
  const socketPath = parsed.searchParams.get("socketPath");
  return {
    where: socketPath === null ? `${parsed.host || host}/${database}` : `${socketPath} ${database}`,
    config: {
      user: decode(parsed.username),
      password: decode(parsed.password),
      database,
      ...(socketPath === null ? { host, port } : { socketPath }),
      ...sslOf(parsed.searchParams.get("ssl")),
    },
  };
}

function parse(url: string): URL {
  if (typeof url !== "string" || !/^(mysql|mariadb):/.test(url)) {
    throw wrong("to be a URL that starts with mysql:// or mariadb://");
  }
  const parsed = URL.parse(url);
  // In a password with an unencoded # or /, the part before it looks like a host and its port.
  if (parsed !== null && parsed.hash === "" && (parsed.username !== "" || !url.includes("@"))) {
    for (const name of parsed.searchParams.keys()) {
      if (name !== "ssl" && name !== "socketPath") {
        const shown = /^[A-Za-z_]+$/.test(name) ? JSON.stringify(name) : "another one";
        throw wrong(`to have no other parameters than ssl and socketPath, got ${shown}`);
      }
    }
    return parsed;
  }
  throw wrong(`to be like mysql://user:password@host:3306/database; ${encodeLogin}`);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw wrong(`to be percent-encoded; ${encodeLogin}`);
  }
}

/** `ssl=true` checks the server's certificate; `ssl=no-verify` encrypts without verifying the server. */
function sslOf(value: string | null): object {
  if (value === null || value === "false") return {};
  if (value === "true") return { ssl: { rejectUnauthorized: true } };
  if (value === "no-verify") return { ssl: { rejectUnauthorized: false } };
  throw wrong('to have an ssl of "true", "false" or "no-verify"');
}

/** The URL may carry a password, so it is not repeated. */
function wrong(what: string): EscapementError {
  return new EscapementError("invalid-option", `expected mysql's url ${what}`);
}
