import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from "node:sqlite";

export type Row = Record<string, SQLOutputValue>;
/** A row as a list, in column order: for many rows, that is a good deal cheaper. */
export type Tuple = readonly SQLOutputValue[];

/**
 * A database handle with its statements, each prepared once.
 *
 * Statements say `limit +?` and never `limit ?`: SQLite plans by the value of a bare limit, and so prepares the
 * statement again for every run, at ten times the price of running it. They say `?` and never `?1`: before 22.20 and 24.7
 * Node does not bind numbered parameters by position.
 */
export class Connection {
  readonly database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #listing = new Map<string, StatementSync>();

  constructor(database: DatabaseSync) {
    this.database = database;
  }

  /** Returns how many rows changed. */
  run(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.#statement(sql).run(...values).changes);
  }

  /** Returns the number assigned to the last row. */
  insert(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.#statement(sql).run(...values).lastInsertRowid);
  }

  get(sql: string, ...values: SQLInputValue[]): Row | undefined {
    const statement = this.#statement(sql);
    return orRounded(statement, sql, () => statement.get(...values));
  }

  all(sql: string, ...values: SQLInputValue[]): Row[] {
    const statement = this.#statement(sql);
    return orRounded(statement, sql, () => statement.all(...values));
  }

  tuples(sql: string, ...values: SQLInputValue[]): Tuple[] {
    let statement = this.#listing.get(sql);
    if (statement === undefined) {
      statement = this.#prepare(sql);
      this.#listing.set(sql, statement);
    }
    return listing(statement, sql, values);
  }

  /** For statements built from a caller's filter: caching all their forms would be unbounded. */
  once(sql: string, ...values: SQLInputValue[]): Row[] {
    const statement = this.#prepare(sql);
    return orRounded(statement, sql, () => statement.all(...values));
  }

  tuplesOnce(sql: string, ...values: SQLInputValue[]): Tuple[] {
    return listing(this.#prepare(sql), sql, values);
  }

  #statement(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement = this.#prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  #prepare(sql: string): StatementSync {
    const statement = this.database.prepare(sql);
    // A caller's own connection may have been opened with other settings.
    statement.setReadBigInts(false);
    statement.setReturnArrays(false);
    return statement;
  }
}

function listing(statement: StatementSync, sql: string, values: readonly SQLInputValue[]): Tuple[] {
  statement.setReturnArrays(true);
  // The types do not reflect what that does to the rows.
  return orRounded(statement, sql, () => statement.all(...values) as unknown as Tuple[]);
}

/**
 * Reads again if a number is too large for this library to have written it: one such row must not make all others unreadable. Only a
 * read may be repeated.
 */
function orRounded<T>(statement: StatementSync, sql: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!isOutOfRange(error) || !/^\s*(select|with)\b/i.test(sql)) throw error;
    statement.setReadBigInts(true);
    try {
      return rounded(read()) as T;
    } finally {
      statement.setReadBigInts(false);
    }
  }
}

function isOutOfRange(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_OUT_OF_RANGE";
}

/** Rows, one row, or nothing. */
function rounded(found: unknown): unknown {
  if (typeof found === "bigint") return Number(found);
  if (Array.isArray(found)) return found.map(rounded);
  if (typeof found !== "object" || found === null || ArrayBuffer.isView(found)) return found;
  return Object.fromEntries(Object.entries(found).map(([name, value]) => [name, rounded(value)]));
}

const connections = new WeakMap<DatabaseSync, Connection>();

/** The connection of a handle, including a caller's own. */
export function connectionOf(database: DatabaseSync): Connection {
  const known = connections.get(database);
  if (known !== undefined) return known;
  const connection = new Connection(database);
  connections.set(database, connection);
  return connection;
}
