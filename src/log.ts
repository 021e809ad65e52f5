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
  warn: (fields, message) => console.warn(`escapement: ${message}`, fields),
  error: (fields, message) => console.error(`escapement: ${message}`, fields),
};
