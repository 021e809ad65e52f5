import { EscapementError } from "../../errors.ts";
import { encodeLogin } from "../../options.ts";

/** What the store needs of a connection of mysql2, in its form with callbacks. */
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
  /** The same connection in its form with promises. */
  promise(): object;
}

/** A connection that belongs to a pool. */
export interface PooledConnection extends RawConnection {
  release(): void;
}

/** What the store needs of a pool of mysql2, in its form with callbacks. */
export interface RawPool {
  readonly config?: { readonly connectionLimit?: number };
  getConnection(callback: (error: Error | null, connection: PooledConnection) => void): void;
}

/** A pool of `mysql2`, or of `mysql2/promise`, which has the other one inside. */
export type MysqlPool = RawPool | { readonly pool: RawPool };

interface Mysql2 {
  createConnection(options: object): RawConnection;
}

/** Loads the client, which is an optional dependency: only those who use this store need it. */
export async function loadClient(): Promise<Mysql2> {
  try {
    const { default: mysql2 } = await import("mysql2");
    return mysql2 as unknown as Mysql2;
  } catch (error) {
    throw new EscapementError(
      "store-missing-client",
      "the MySQL store needs the package mysql2, which is not installed; run: npm install mysql2",
      { cause: error },
    );
  }
}

export interface Target {
  /** Host, port and database, for messages; without user and password. */
  readonly where: string;
  readonly config: object;
}

/** Everything that both forms of a URL may carry: `mysql://user:password@host:3306/database?ssl=true&socketPath=…`. */
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
  // What stands in front of a # or / in a password looks like a host and its port.
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

/** `ssl=true` checks the server's certificate; `ssl=no-verify` encrypts without knowing with whom one speaks. */
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
