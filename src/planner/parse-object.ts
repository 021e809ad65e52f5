import { describe, EscapementError } from "../errors.ts";

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Says of one column of a schedule that something else, or a newer version, has written it. */
export function unreadable(column: string, what: string): EscapementError {
  return new EscapementError(
    "unreadable-row",
    `unreadable: ${column}: ${what}; define the schedule again, or remove it`,
  );
}

/** @throws EscapementError `unreadable-row` */
export function parseObject(
  text: string,
  column: string,
  revive?: (key: string, value: unknown) => unknown,
): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text, revive);
  } catch {
    throw unreadable(column, `expected JSON, got ${describe(text)}`);
  }
  if (isObject(value)) return value;
  throw unreadable(column, `expected a JSON object, got ${describe(text)}`);
}
