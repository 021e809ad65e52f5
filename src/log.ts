import { inspect } from "node:util";
import { printable } from "./runtime/printable.ts";

/** Where the library's own lines go. A pino logger fits as it is. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** Speaks only when something is wrong. */
export const consoleLogger: Logger = {
  debug() {},
  info() {},
  warn: (fields, message) => console.warn(lineOf(fields, message)),
  error: (fields, message) => console.error(lineOf(fields, message)),
};

/** One line, but for the stacks of errors. Errors carry what jobs and servers said, which may hold anything. */
function lineOf(fields: object, message: string): string {
  const line = `escapement: ${printable(message)}`;
  if (Object.keys(fields).length === 0) return line;
  const shown = inspect(fields, { breakLength: Number.POSITIVE_INFINITY, compact: true });
  return `${line} ${shown.split("\n").map(printable).join("\n")}`;
}
