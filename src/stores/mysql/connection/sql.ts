/** A value in a statement. A list becomes the inside of `in (…)`; an empty one matches nothing. */
export type SqlValue = string | number | boolean | null | Sql | Rendered | readonly SqlValue[];

/** A piece of a statement that renders itself: with thousands of them, that is a good deal cheaper. */
export type Rendered = (dialect: Dialect) => string;

/** A statement, or a piece of one, with its values kept separately. Only the text between the values is ever taken as SQL. */
export class Sql {
  readonly strings: readonly string[];
  readonly values: readonly SqlValue[];

  constructor(strings: readonly string[], values: readonly SqlValue[]) {
    this.strings = strings;
    this.values = values;
  }
}

/**
 * Writes a statement.
 *
 * @example
 * sql`select seq from escapement_jobs where ns = ${ns} and id in (${ids})`
 */
export function sql(strings: TemplateStringsArray, ...values: SqlValue[]): Sql {
  return new Sql(strings, values);
}

/** A piece of SQL that is known at compile time: a list of columns, a table. Never anything from outside. */
export function fixed(text: string): Sql {
  return new Sql([text], []);
}

export function join(pieces: readonly Sql[], separator: string): Sql {
  if (pieces.length === 0) return fixed("");
  const strings = ["", ...Array.from({ length: pieces.length - 1 }, () => separator), ""];
  return new Sql(strings, pieces);
}

/** How a connection wants its statements rendered. */
export interface Dialect {
  readonly tablePrefix: string;
  /** A string as a literal that means the same whatever it contains. */
  text(value: string): string;
}

const ownPrefix = "escapement_";

export function render(statement: Sql, dialect: Dialect): string {
  const { strings, values } = statement;
  let text = prefixed(strings[0] ?? "", dialect);
  for (let index = 0; index < values.length; index += 1) {
    text += renderValue(values[index] ?? null, dialect) + prefixed(strings[index + 1] ?? "", dialect);
  }
  return text;
}

function prefixed(text: string, { tablePrefix }: Dialect): string {
  return tablePrefix === ownPrefix ? text : text.replaceAll(ownPrefix, tablePrefix);
}

function renderValue(value: SqlValue, dialect: Dialect): string {
  if (typeof value === "string") return dialect.text(value);
  if (typeof value === "number") return renderNumber(value);
  if (value === null) return "null";
  if (typeof value === "boolean") return value ? "1" : "0";
  if (value instanceof Sql) return render(value, dialect);
  if (typeof value === "function") return value(dialect);
  return value.length === 0 ? "null" : value.map((one) => renderValue(one, dialect)).join(", ");
}

export function renderNumber(value: number): string {
  if (!Number.isFinite(value)) throw new RangeError(`expected a finite number for a statement, got ${value}`);
  return String(Math.trunc(value));
}

/** On the store's own connections, whose character set is UTF-8 and whose SQL mode lets a backslash escape. */
export function quoted(value: string): string {
  return /['\\]/.test(value) ? `'${value.replaceAll("\\", "\\\\").replaceAll("'", "''")}'` : `'${value}'`;
}

/** On a caller's connection, whose character set and SQL mode are unknown. */
export function hexadecimal(value: string): string {
  return value === "" ? "''" : `0x${Buffer.from(value).toString("hex")}`;
}

/**
 * The server's clock in milliseconds since 1970. UTC_TIMESTAMP does not depend on the session's time zone, and unlike
 * UNIX_TIMESTAMP(NOW()) it has no hour that occurs twice.
 */
export const serverNow = fixed("(timestampdiff(microsecond, '1970-01-01', utc_timestamp(3)) div 1000)");

/** The store's time, the same for all statements of one call. */
export const now = fixed("@escapement_now");

export function setNow(clockMs: number | null): Sql {
  return sql`set @escapement_now = ${clockMs ?? serverNow}`;
}

/** For SET: how long a transaction may stay idle, 0: forever. MySQL has no such limit, and reads it as a comment. */
export function idleLimit(seconds: number): Sql {
  return fixed(`@escapement_idle = ${seconds} /*M!100300 , idle_transaction_timeout = ${seconds} */`);
}
