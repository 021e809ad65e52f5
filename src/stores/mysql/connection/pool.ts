import { EscapementError } from "../../../errors.ts";
import {
  loadClient,
  type MysqlPool,
  type PooledConnection,
  type RawConnection,
  type RawPool,
  type Target,
} from "./client.ts";
import { OwnLink } from "./link.ts";
import { type Sql, sql } from "./sql.ts";

/** A connection for the duration of one call. The borrower gives it back in one of two ways. */
export interface Borrowed {
  readonly link: OwnLink;
  release(): void;
  /** It is unusable. */
  discard(): void;
}

/** Where connections come from. */
export interface Connections {
  /** Host and database, for messages. */
  readonly where: string;
  /** Whether each transaction must set its isolation level first, because the store may not set it for the connection. */
  readonly setsIsolation: boolean;
  /** Maximum number of connections. */
  readonly size: number;
  borrow(): Promise<Borrowed>;
  /** An idle connection was dead: the other idle ones probably are too. */
  distrust(): void;
  close(): Promise<void>;
}

interface PoolOptions {
  readonly tablePrefix: string;
  readonly timeoutMs: number;
}

interface OwnPoolOptions extends PoolOptions {
  readonly target: Target;
  readonly size: number;
}

interface Waiter {
  readonly resolve: (borrowed: Borrowed) => void;
  readonly reject: (error: unknown) => void;
  /** Its caller was rejected and retries later; it no longer takes a connection. */
  isGone: boolean;
}

const ignore = (): void => {};

/** Connections that the store opens itself, as many as are needed at once, up to a limit. */
export class OwnPool implements Connections {
  readonly where: string;
  readonly size: number;
  readonly setsIsolation = false;
  readonly #options: OwnPoolOptions;
  readonly #idle: RawConnection[] = [];
  readonly #waiters: Waiter[] = [];
  #open = 0;
  #closed = false;

  constructor(options: OwnPoolOptions) {
    this.#options = options;
    this.where = options.target.where;
    this.size = options.size;
  }

  async borrow(): Promise<Borrowed> {
    if (this.#closed) throw closedError(this.where);
    const idle = this.#idle.pop();
    if (idle !== undefined) return this.#lend(idle);
    if (this.#open < this.#options.size) return this.#lend(await this.#connect());
    return this.#wait();
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const { reject } of this.#waiters.splice(0)) reject(closedError(this.where));
    for (const connection of this.#idle.splice(0)) this.#end(connection);
  }

  distrust(): void {
    for (const connection of this.#idle.splice(0)) this.#drop(connection);
  }

  #lend(connection: RawConnection): Borrowed {
    const { tablePrefix, timeoutMs } = this.#options;
    const link = new OwnLink({ connection, tablePrefix, timeoutMs, multiple: true, where: this.where });
    return {
      link,
      release: () => this.#giveBack(connection),
      discard: () => {
        this.#drop(connection);
        this.#serveNext();
      },
    };
  }

  #giveBack(connection: RawConnection): void {
    if (this.#closed) return this.#end(connection);
    const next = this.#waiters.shift();
    if (next !== undefined) next.resolve(this.#lend(connection));
    else this.#idle.push(connection);
  }

  /** A caller waits and there is room for one more. */
  #serveNext(): void {
    const next = this.#closed ? undefined : this.#waiters.shift();
    if (next === undefined) return;
    this.#connect().then((connection) => {
      if (next.isGone) this.#giveBack(connection);
      else next.resolve(this.#lend(connection));
    }, next.reject);
  }

  #wait(): Promise<Borrowed> {
    const { timeoutMs, size } = this.#options;
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        resolve: (borrowed) => {
          clearTimeout(timer);
          resolve(borrowed);
        },
        reject: (error) => {
          clearTimeout(timer);
          reject(error);
        },
        isGone: false,
      };
      const timer = setTimeout(() => {
        waiter.isGone = true;
        // It has left the line if a connection is being opened for it.
        const place = this.#waiters.indexOf(waiter);
        if (place >= 0) this.#waiters.splice(place, 1);
        const message = `MySQL store ${this.where}: all ${size} connections were busy for ${timeoutMs} ms; raise the option connections, or look for long transactions`;
        reject(new EscapementError("store-busy", message));
      }, timeoutMs);
      this.#waiters.push(waiter);
    });
  }

  async #connect(): Promise<RawConnection> {
    this.#open += 1;
    try {
      return await openConnection(this.#options);
    } catch (error) {
      this.#open -= 1;
      // Those behind it would wait for nothing: let them try, and fail, themselves.
      queueMicrotask(() => this.#serveNext());
      throw error;
    }
  }

  #drop(connection: RawConnection): void {
    this.#open -= 1;
    connection.destroy();
  }

  #end(connection: RawConnection): void {
    this.#open -= 1;
    const timer = setTimeout(() => connection.destroy(), this.#options.timeoutMs);
    timer.unref();
    connection.end(() => {
      clearTimeout(timer);
      connection.destroy();
    });
  }
}

function closedError(where: string): EscapementError {
  return new EscapementError("stopped", `MySQL store ${where} is closed; open it again to use it`);
}

/** Waits for locks at most half as long as a call may take, so the reason can still be reported. */
function sessionSettings(timeoutMs: number): Sql[] {
  const lockSeconds = Math.max(1, Math.floor(timeoutMs / 2_000));
  return [
    sql`set session transaction isolation level read committed`,
    sql`set autocommit = 1, time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'`,
    sql`set innodb_lock_wait_timeout = ${lockSeconds}`,
  ];
}

async function openConnection({ target, timeoutMs, tablePrefix }: OwnPoolOptions): Promise<RawConnection> {
  const mysql2 = await loadClient();
  const connection = mysql2.createConnection({
    ...target.config,
    charset: "utf8mb4_bin",
    multipleStatements: true,
    connectTimeout: timeoutMs,
    // Affected rows must be those that changed, so an insert reports how many it added.
    flags: ["-FOUND_ROWS"],
  });
  // A connection that dies while idle must not crash the process; the next call on it finds out.
  connection.on("error", ignore);
  try {
    await connected(connection, timeoutMs, target.where);
    const link = new OwnLink({ connection, tablePrefix, timeoutMs, multiple: true, where: target.where });
    for (const setting of sessionSettings(timeoutMs)) link.write(setting);
    await link.flush();
    return connection;
  } catch (error) {
    connection.destroy();
    throw error;
  }
}

function connected(connection: RawConnection, timeoutMs: number, where: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(
        new EscapementError(
          "store-unavailable",
          `MySQL store ${where}: no connection within ${timeoutMs} ms; check that the server runs and can be reached`,
        ),
      );
    }, timeoutMs);
    connection.connect((error) => {
      clearTimeout(timer);
      if (error) reject(error);
      else resolve();
    });
  });
}

let pools = 0;
/** mysql2's default pool size. */
const defaultSize = 10;

/** Connections of a pool that belongs to the caller, whose settings are left alone. */
export class ForeignPool implements Connections {
  readonly where: string;
  readonly size: number;
  readonly setsIsolation = true;
  readonly #pool: RawPool;
  readonly #options: PoolOptions;
  #closed = false;

  constructor(pool: MysqlPool, options: PoolOptions) {
    this.#pool = "getConnection" in pool && !("pool" in pool) ? pool : insideOf(pool);
    this.#options = options;
    pools += 1;
    this.where = `of the given pool (${pools})`;
    this.size = this.#pool.config?.connectionLimit ?? defaultSize;
  }

  /** The caller's own transactions may hold all connections while they wait for this one, so it does not wait forever. */
  borrow(): Promise<Borrowed> {
    const { timeoutMs } = this.#options;
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(closedError(this.where));
      let isGone = false;
      const timer = setTimeout(() => {
        isGone = true;
        const message = `MySQL store ${this.where}: none of its ${this.size} connections was free for ${timeoutMs} ms; raise its connectionLimit above the number of transactions that enqueue at once, or give the store a url instead of the pool`;
        reject(new EscapementError("store-busy", message));
      }, timeoutMs);
      this.#pool.getConnection((error, connection) => {
        clearTimeout(timer);
        if (error) return reject(error);
        if (isGone) return connection.release();
        resolve(this.#lend(connection));
      });
    });
  }

  #lend(connection: PooledConnection): Borrowed {
    const { tablePrefix, timeoutMs } = this.#options;
    const multiple = connection.config?.multipleStatements === true;
    const link = new OwnLink({
      connection,
      tablePrefix,
      timeoutMs,
      multiple,
      foreign: true,
      where: this.where,
    });
    return {
      link,
      release: () => connection.release(),
      discard: () => connection.destroy(),
    };
  }

  distrust(): void {}

  /** Ending the pool is up to the caller. */
  async close(): Promise<void> {
    this.#closed = true;
  }
}

function insideOf(pool: MysqlPool): RawPool {
  return "pool" in pool ? pool.pool : pool;
}
