import { EscapementError } from "../../../errors.ts";
import { type Answer, type Link, type Tuple, toAnswer } from "../connection/link.ts";
import { type Dialect, hexadecimal, render, type Sql } from "../connection/sql.ts";

/** Runs one statement on a caller's connection, and returns the client's raw result. */
type RunStatement = (text: string) => Promise<unknown>;

/** A caller's connection with an open transaction: one statement at a time, and no assumptions about its settings. */
export class ForeignLink implements Link {
  readonly dialect: Dialect;
  readonly countsChanges = false;
  readonly #run: RunStatement;
  #tail: Promise<unknown> = Promise.resolve();
  #failure: unknown = null;

  constructor(run: RunStatement, tablePrefix: string) {
    this.#run = run;
    this.dialect = { tablePrefix, text: hexadecimal };
  }

  query(statement: Sql): Promise<Answer> {
    const text = render(statement, this.dialect);
    const answer = this.#tail.then(async () => {
      // An earlier failure may have rolled the transaction back; nothing may be written after it.
      if (this.#failure !== null) throw this.#failure;
      return answerOf(await this.#run(text));
    });
    this.#tail = answer.catch((error: unknown) => {
      this.#failure ??= error;
    });
    return answer;
  }

  write(statement: Sql): void {
    this.query(statement).catch(() => {});
  }

  async flush(): Promise<void> {
    await this.#tail;
    if (this.#failure !== null) throw this.#failure;
  }
}

/** Rows may be lists or objects; both keep the order of the columns. */
function answerOf(result: unknown): Answer {
  if (!Array.isArray(result)) return toAnswer(result);
  return { ...toAnswer([]), rows: result.map(toTuple) };
}

function toTuple(row: unknown): Tuple {
  return Array.isArray(row) ? row : Object.values(row as object);
}

type Method = (...args: unknown[]) => unknown;

function method(object: object, name: string): Method | null {
  const value: unknown = Reflect.get(object, name);
  return typeof value === "function" ? (value.bind(object) as Method) : null;
}

/**
 * How to run statements through what the caller passed as `tx`: a mysql2 connection, in either form, or the transaction of
 * Kysely, Drizzle or Knex.
 */
export function runnerOf(tx: unknown): RunStatement {
  if (typeof tx !== "object" && typeof tx !== "function") return refuse(typeof tx);
  if (tx === null) return refuse("null");
  return mysql2(tx) ?? kysely(tx) ?? drizzle(tx) ?? knex(tx) ?? refuse("an object that is none of these");
}

function refuse(what: string): never {
  throw new EscapementError(
    "transaction-unavailable",
    `expected tx to be a connection of mysql2 with an open transaction, or a transaction of Kysely, Drizzle or Knex, got ${what}`,
  );
}

function kysely(tx: object): RunStatement | null {
  const execute = method(tx, "executeQuery");
  if (execute === null) return null;
  if (Reflect.get(tx, "isTransaction") !== true) return refuse("a Kysely instance outside of a transaction");
  return async (sql) => {
    // What CompiledQuery.raw(sql) makes.
    const node = { kind: "RawNode", sqlFragments: [sql], parameters: [] };
    const query = { sql, parameters: [], query: node, queryId: { queryId: crypto.randomUUID() } };
    const result = await execute(query);
    if (typeof result !== "object" || result === null) return result;
    const { rows, insertId, numAffectedRows } = result as Record<string, unknown>;
    if (numAffectedRows === undefined && Array.isArray(rows)) return rows;
    return { insertId: Number(insertId ?? 0), affectedRows: Number(numAffectedRows ?? 0) };
  };
}

function knex(tx: object): RunStatement | null {
  const raw = method(tx, "raw");
  if (raw === null || method(tx, "commit") === null) return null;
  if (Reflect.get(tx, "isTransaction") !== true) return refuse("a Knex instance outside of a transaction");
  // Knex reads question marks as placeholders; there are none in this SQL, because strings are in hexadecimal.
  return async (sql) => firstOf(await raw(sql));
}

function drizzle(tx: object): RunStatement | null {
  const execute = method(tx, "execute");
  if (execute === null || Reflect.get(tx, "dialect") === undefined) return null;
  if (method(tx, "rollback") === null || Reflect.get(tx, "nestedIndex") === undefined) {
    return refuse("a Drizzle database outside of a transaction");
  }
  return async (sql) => firstOf(await execute(sql));
}

function mysql2(tx: object): RunStatement | null {
  const query = method(tx, "query");
  if (query === null || method(tx, "beginTransaction") === null) return null;
  const inner: unknown = Reflect.get(tx, "connection");
  const promised = typeof inner === "object" && inner !== null && method(inner, "query") !== null;
  const run: RunStatement = promised
    ? async (sql) => firstOf(await query({ sql, rowsAsArray: true }))
    : (sql) =>
        new Promise((resolve, reject) => {
          query({ sql, rowsAsArray: true }, (error: unknown, result: unknown) =>
            error ? reject(error) : resolve(result),
          );
        });
  return insideTransaction(run);
}

/** Only the server knows whether a transaction is open, so it is asked before the first statement. */
function insideTransaction(run: RunStatement): RunStatement {
  let checked: Promise<void> | null = null;
  const check = async (): Promise<void> => {
    if (!toAnswer(await run("do 0")).inTransaction) {
      refuse("a connection without a transaction; run START TRANSACTION on it first");
    }
  };
  return async (sql) => {
    checked ??= check();
    await checked;
    return run(sql);
  };
}

/** The rows or the header of a mysql2 result; the columns come after it. */
function firstOf(result: unknown): unknown {
  return Array.isArray(result) ? result[0] : result;
}
