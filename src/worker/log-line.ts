import { inspect } from "node:util";

/** What a handler logged, as a string. Types ask for one; plain JavaScript may give anything, and `[object Object]` would be useless. */
export function logLine(value: unknown): string {
  if (typeof value !== "object" || value === null || hasOwnText(value)) return String(value);
  return inspect(value, { breakLength: Number.POSITIVE_INFINITY, compact: true });
}

/** Errors, dates and URLs say themselves what they are; a list only says so of its items. */
function hasOwnText(value: object): boolean {
  return "toString" in value && value.toString !== Object.prototype.toString && !Array.isArray(value);
}
