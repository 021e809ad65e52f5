import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from "node:sqlite";

export type Row = Record<string, SQLOutputValue>;
/** A row as a list, in the order of its columns: where many are read, that is a good deal cheaper. */
export type Tuple = readonly SQLOutputValue[];

/**
 * A database handle with its statements, each prepared once.
 *
 * Statements say `limit +?` and never `limit ?`: SQLite plans by the value of a bare limit, and so prepares the
 * statement anew for every run, at ten times the price of running it. They say `?` and never `?1`: before 22.20 and 24.7
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

  get(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#statement(sql).get(...values);
  }

  all(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#statement(sql).all(...values);
  }

  tuples(sql: string, ...values: SQLInputValue[]): Tuple[] {
    let statement = this.#listing.get(sql);
    if (statement === undefined) {
      statement = this.#prepare(sql);
      this.#listing.set(sql, statement);
    }
    return listing(statement, values);
  }

  /** For statements that are put together from what was asked: keeping all their forms would know no bound. */
  once(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#prepare(sql).all(...values);
  }

  tuplesOnce(sql: string, ...values: SQLInputValue[]): Tuple[] {
    return listing(this.#prepare(sql), values);
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

function listing(statement: StatementSync, values: readonly SQLInputValue[]): Tuple[] {
  statement.setReturnArrays(true);
  // The types do not know what that does to the rows.
  return statement.all(...values) as unknown as Tuple[];
}

const connections = new WeakMap<DatabaseSync, Connection>();

/** The connection of a handle, also of one that belongs to the caller. */
export function connectionOf(database: DatabaseSync): Connection {
  const known = connections.get(database);
  if (known !== undefined) return known;
  const connection = new Connection(database);
  connections.set(database, connection);
  return connection;
}
