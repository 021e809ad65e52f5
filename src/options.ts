import { formatDuration, parseDuration } from "./duration.ts";
import { describe, EscapementError } from "./errors.ts";
import type { Logger } from "./log.ts";

/** Refuses unknown options: a misspelt one is an error, not a silent default. */
export function checkKnown(options: object, known: readonly string[], what: string): void {
  if (typeof options !== "object" || options === null) {
    throw new EscapementError(
      "invalid-option",
      `expected the options of ${what} to be an object, got ${describe(options)}`,
    );
  }
  for (const key of Object.keys(options)) {
    if (!known.includes(key)) {
      throw new EscapementError(
        "invalid-option",
        `unknown option ${describe(key)} of ${what}; known options: ${known.join(", ")}`,
      );
    }
  }
}

export function checkInteger(value: unknown, min: number, max: number, option: string): number {
  if (!Number.isInteger(value)) throw outOfRange(value, min, max, option, "a whole number");
  return checkNumber(value, min, max, option);
}

export function checkNumber(value: unknown, min: number, max: number, option: string): number {
  if (typeof value !== "number" || !(value >= min && value <= max)) {
    throw outOfRange(value, min, max, option, "a number");
  }
  return value;
}

/** A duration within bounds. Without bounds of one's own, anything but zero: a wait of no time at all is a mistake. */
export function checkDuration(value: unknown, option: string, minMs = 1, maxMs = Infinity): number {
  const ms = parseDuration(value, option);
  if (ms >= minMs && ms <= maxMs) return ms;
  const bound = ms < minMs ? `at least ${formatDuration(minMs)}` : `at most ${formatDuration(maxMs)}`;
  throw new EscapementError(
    "invalid-option",
    `expected ${option} to be a duration of ${bound}, got ${describe(value)}`,
  );
}

export function checkOneOf<T extends string>(value: unknown, allowed: readonly T[], option: string): T {
  const found = allowed.find((candidate) => candidate === value);
  if (found === undefined) {
    throw new EscapementError(
      "invalid-option",
      `expected ${option} to be one of ${allowed.map((one) => JSON.stringify(one)).join(", ")}, got ${describe(value)}`,
    );
  }
  return found;
}

export function checkBoolean(value: unknown, option: string): boolean {
  if (typeof value !== "boolean") {
    throw new EscapementError(
      "invalid-option",
      `expected ${option} to be true or false, got ${describe(value)}`,
    );
  }
  return value;
}

export function checkDate(value: unknown, option: string): Date {
  if (!(value instanceof Date) || Number.isNaN(value.getTime())) {
    throw new EscapementError(
      "invalid-option",
      `expected ${option} to be a valid Date, got ${describe(value)}`,
    );
  }
  return value;
}

export function checkLogger(value: unknown, option: string): Logger {
  const given: Readonly<Record<string, unknown>> = Object(value);
  const missing = ["debug", "info", "warn", "error"].find((level) => typeof given[level] !== "function");
  if (missing === undefined) return value as Logger;
  throw new EscapementError(
    "invalid-option",
    `expected ${option} to be a logger with debug, info, warn and error, got ${kindOf(value)} without ${missing}`,
  );
}

/** One text, or a list of them; none of them empty. It is not shown: addresses may hold passwords. */
export function checkTexts(value: unknown, option: string): readonly string[] {
  const texts: unknown = typeof value === "string" ? [value] : value;
  const isText = (one: unknown): one is string => typeof one === "string" && one.trim() !== "";
  if (Array.isArray(texts) && texts.length > 0 && texts.every(isText)) return texts;
  const wrong = Array.isArray(texts) ? texts.find((one) => !isText(one)) : undefined;
  const inside = Array.isArray(value) && value.length > 0 ? ` with ${kindOf(wrong)} in it` : "";
  throw new EscapementError(
    "invalid-option",
    `expected ${option} to be a string or a list of strings, got ${kindOf(value)}${inside}`,
  );
}

/** Reads `a:9092,b` into `host:port` of each. */
export function checkHosts(text: string, defaultPort: number, option: string): string[] {
  return text.split(",").map((part) => {
    const [, host, port = String(defaultPort)] =
      /^(\[[\da-f:.]+\]|[^\s:@[\]]+)(?::(\d+))?$/i.exec(part.trim()) ?? [];
    if (host !== undefined && Number(port) >= 1 && Number(port) <= 65_535)
      return `${host.toLowerCase()}:${port}`;
    throw new EscapementError(
      "invalid-option",
      `expected each host in ${option} to be host or host:port, with a port from 1 to 65535 and IPv6 in brackets, got something else`,
    );
  });
}

/** What to do about a login that makes a URL unreadable. */
export const encodeLogin =
  "write #, /, ?, @ and % in a user or a password as %23, %2F, %3F, %40 and %25 (encodeURIComponent does)";

/** Reads the `user:password` of an address; what has no colon is one text. */
export function checkLogin(text: string, option: string): [first: string, second?: string] {
  const [first = "", second] = text.split(/:(.*)/s);
  try {
    return second === undefined
      ? [decodeURIComponent(first)]
      : [decodeURIComponent(first), decodeURIComponent(second)];
  } catch (cause) {
    throw new EscapementError(
      "invalid-option",
      `expected the login in ${option} to be percent-encoded (a percent sign itself is %25), got another string`,
      { cause },
    );
  }
}

/** What was given, for a message that must not show it: it may hold a password. */
export function kindOf(value: unknown): string {
  if (typeof value === "string") return value === "" ? "an empty string" : "a string";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (value === undefined || value === null) return String(value);
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

function outOfRange(value: unknown, min: number, max: number, option: string, what: string): EscapementError {
  return new EscapementError(
    "invalid-option",
    `expected ${option} to be ${what} from ${min} to ${max}, got ${describe(value)}`,
  );
}
