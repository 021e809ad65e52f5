import { promisify } from "node:util";
import type { Clock } from "../../clock.ts";
import { EscapementError } from "../../errors.ts";
import type {
  InboxBegin,
  InboxBegun,
  InboxClaim,
  InboxCommit,
  InboxCommitted,
  InboxPrune,
  InboxStore,
} from "../../inbox-store.ts";
import { loadClient, type RawConnection, targetOf } from "./client.ts";
import { isConflict, translateError } from "./errors.ts";

export interface MysqlInboxOptions {
  /** `mysql://user:password@host:3306/database` */
  readonly url: string;
  /** @default "escapement_" */
  readonly tablePrefix?: string;
  /** @default the server's own */
  readonly clock?: Clock;
}

/** Keeps an inbox's markers in MySQL or MariaDB, beside the effects: each commits with its marker. The effect gets a connection of `mysql2/promise` in an open transaction. */
export function mysqlInbox(urlOrOptions: string | MysqlInboxOptions): InboxStore {
  return new MysqlInbox(typeof urlOrOptions === "string" ? { url: urlOrOptions } : urlOrOptions);
}

const maxIdle = 5;
const maxTries = 8;

type Rows = readonly (readonly unknown[])[];

class MysqlInbox implements InboxStore {
  readonly atomic = true;
  readonly #options: MysqlInboxOptions;
  readonly #table: string;
  readonly #idle: RawConnection[] = [];

  constructor(options: MysqlInboxOptions) {
    const { tablePrefix = "escapement_" } = options;
    if (!/^\w{0,32}$/.test(tablePrefix)) {
      throw new EscapementError(
        "invalid-option",
        `expected tablePrefix to be letters, digits and _, got ${JSON.stringify(tablePrefix)}`,
      );
    }
    this.#options = options;
    this.#table = `${tablePrefix}inbox`;
  }

  async migrate(): Promise<void> {
    await this.#withConnection((connection) =>
      ask(
        connection,
        `create table if not exists ${this.#table} (
           \`key\` varbinary(2048) not null, token bigint not null, holder varbinary(1024) not null,
           running_until bigint, done_until bigint, primary key (\`key\`), key (done_until), key (running_until)
         ) engine = InnoDB row_format = dynamic`,
      ),
    );
  }

  begin({ key, holder, leaseMs }: InboxBegin): Promise<InboxBegun> {
    return this.#patiently(async (connection): Promise<InboxBegun> => {
      const now = this.#now();
      const until = `${now} + ${Math.trunc(leaseMs)}`;
      // A row that holds nothing is made first, so that there is always one to lock. The update that changes nothing locks it at once:
      // reading it first, two comers would each wait for the other.
      await ask(
        connection,
        `insert into ${this.#table} (\`key\`, token, holder, running_until) values (${text(key)}, 0, '', 0)
         on duplicate key update token = token`,
      );
      const [row = []] = await ask(
        connection,
        `select token, holder = ${text(holder)}, running_until > ${now}, done_until > ${now}, running_until - ${now}
         from ${this.#table} where \`key\` = ${text(key)} for update`,
      );
      const [token, isOwn, isRunning, isDone, leftMs] = row.map(Number);
      if (isDone === 1) return { outcome: "done" };
      if (isRunning === 1 && isOwn === 1) return { outcome: "begun", token: token ?? 0 };
      if (isRunning === 1) return { outcome: "running", retryInMs: leftMs ?? 0 };
      await ask(
        connection,
        `update ${this.#table} set token = token + 1, holder = ${text(holder)}, running_until = ${until}, done_until = null
         where \`key\` = ${text(key)}`,
      );
      return { outcome: "begun", token: (token ?? 0) + 1 };
    });
  }

  commit<T>({ key, token, retentionMs, run }: InboxCommit<T>): Promise<InboxCommitted<T>> {
    return this.#inTransaction(async (connection): Promise<InboxCommitted<T>> => {
      const value = await run(connection.promise());
      // The marker last: until then its lease can be renewed, and others can see it.
      const done = `running_until = null, done_until = ${this.#now()} + ${Math.trunc(retentionMs)}`;
      const isOwn = await this.#change(connection, { key, token }, done);
      return isOwn ? { outcome: "committed", value } : { outcome: "stale" };
    });
  }

  extend({ leaseMs, ...claim }: InboxClaim & { readonly leaseMs: number }): Promise<boolean> {
    const until = `running_until = ${this.#now()} + ${Math.trunc(leaseMs)}`;
    return this.#patiently((connection) => this.#change(connection, claim, until));
  }

  async release(claim: InboxClaim): Promise<void> {
    await this.#patiently((connection) => this.#change(connection, claim, "running_until = 0"));
  }

  prune({ limit, retentionMs }: InboxPrune): Promise<number> {
    const now = this.#now();
    return this.#inTransaction(async (connection) => {
      await ask(
        connection,
        `delete from ${this.#table} where done_until <= ${now} or running_until <= ${now} - ${Math.trunc(retentionMs)}
         limit ${Math.trunc(limit)}`,
      );
      const [[count] = [0]] = await ask(connection, "select row_count()");
      return Number(count);
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#idle.splice(0).map((connection) => promisify(connection.end.bind(connection))()));
  }

  async #change(connection: RawConnection, { key, token }: InboxClaim, change: string): Promise<boolean> {
    const mine = `\`key\` = ${text(key)} and token = ${Math.trunc(token)} and running_until is not null`;
    const found = await ask(connection, `select 1 from ${this.#table} where ${mine} for update`);
    if (found.length === 0) return false;
    await ask(connection, `update ${this.#table} set ${change} where ${mine}`);
    return true;
  }

  /** The clock as an expression: a test's own, or the server's. */
  #now(): string {
    const { clock } = this.#options;
    return clock === undefined
      ? "cast(unix_timestamp(now(3)) * 1000 as signed)"
      : String(Math.trunc(clock.now()));
  }

  /** Deadlocks are normal in InnoDB; what stood in another's way is tried again, unless a caller's effect is part of it. */
  async #patiently<T>(work: (connection: RawConnection) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#inTransaction(work);
      } catch (error) {
        if (tries >= maxTries || !isConflict(error)) throw error;
      }
    }
  }

  #inTransaction<T>(work: (connection: RawConnection) => Promise<T>): Promise<T> {
    return this.#withConnection(async (connection) => {
      await ask(connection, "set transaction isolation level read committed");
      await ask(connection, "start transaction");
      try {
        const result = await work(connection);
        await ask(connection, isStale(result) ? "rollback" : "commit");
        return result;
      } catch (error) {
        await ask(connection, "rollback");
        throw error;
      }
    });
  }

  async #withConnection<T>(use: (connection: RawConnection) => Promise<T>): Promise<T> {
    const connection = this.#idle.pop() ?? (await this.#connect());
    try {
      const result = await use(connection);
      if (this.#idle.length < maxIdle) this.#idle.push(connection);
      else connection.destroy();
      return result;
    } catch (error) {
      connection.destroy();
      throw error;
    }
  }

  async #connect(): Promise<RawConnection> {
    const { config, where } = targetOf(this.#options.url);
    const connection = (await loadClient()).createConnection(config);
    connection.on("error", () => {});
    try {
      await promisify(connection.connect.bind(connection))();
    } catch (error) {
      throw translateError(error, where);
    }
    return connection;
  }
}

function ask(connection: RawConnection, sql: string): Promise<Rows> {
  return new Promise((resolve, reject) => {
    connection.query({ sql, rowsAsArray: true }, (error, result) => {
      if (error) reject(error);
      else resolve(Array.isArray(result) ? result : []);
    });
  });
}

/** As bytes: nothing in it can end the text, whatever the server's settings. */
function text(value: string): string {
  return `x'${Buffer.from(value).toString("hex")}'`;
}

function isStale(result: unknown): boolean {
  return typeof result === "object" && result !== null && "outcome" in result && result.outcome === "stale";
}
