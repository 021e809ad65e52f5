import { accessSync, constants } from "node:fs";
import { dirname } from "node:path";
import { type ErrorCode, EscapementError } from "../../errors.ts";

/** SQLite's primary result codes that mean something to a caller. */
const codes: ReadonlyMap<number, { readonly code: ErrorCode; readonly advice: string }> = new Map([
  [
    5,
    {
      code: "store-busy",
      advice: "another process holds its write lock; look for a long transaction on this file",
    },
  ],
  [
    6,
    {
      code: "store-busy",
      advice: "another connection holds a table of it; look for a long transaction on this file",
    },
  ],
  [8, { code: "store-readonly", advice: "make the file and its folder writable for this user" }],
  [
    10,
    {
      code: "store-unavailable",
      advice: "the disk or the file system refused a read or a write; check them",
    },
  ],
  [
    11,
    {
      code: "store-corrupt",
      advice: "restore it from a backup, or save what is left with `sqlite3 FILE .recover`",
    },
  ],
  [13, { code: "store-full", advice: "free some space on its disk; nothing of this call was written" }],
  [14, { code: "store-unavailable", advice: "check that the path is a file that this user may open" }],
  [23, { code: "store-readonly", advice: "make the file and its folder writable for this user" }],
  [26, { code: "store-corrupt", advice: "this file is not a SQLite database; give another path" }],
]);

/** SQLite's own error number, without its extension; null for every other error. */
function resultCode(error: unknown): number | null {
  if (!(error instanceof Error) || !("errcode" in error) || typeof error.errcode !== "number") return null;
  return error.errcode & 0xff;
}

/** Whether another connection holds the lock, so a retry is enough. */
export function isLocked(error: unknown): boolean {
  const code = resultCode(error);
  return code === 5 || code === 6;
}

const unknownTable = {
  code: "store-corrupt",
  advice: "its tables are not as this library created them; restore it from a backup, or give another path",
} as const;
const genericError = 1;
const readOnly = 8;
const cannotOpen = 14;

/** SQLite creates its own files next to the database, so its folder must be writable too. */
function isWritable(path: string): boolean {
  try {
    accessSync(dirname(path), constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** An error as it leaves the store; errors that are not SQLite's pass unchanged. */
export function translateError(error: unknown, path: string): unknown {
  const code = resultCode(error);
  if (code === null || !(error instanceof Error)) return error;
  if (error.message.includes("statements in progress")) {
    const advice = "read it to its end, or do not iterate over what a writing statement returns";
    const message = `SQLite store ${path}: a function given to tx has left a statement of iterate() open; ${advice}`;
    return new EscapementError("transaction-used", message, { cause: error });
  }
  // Tables of these names that another program created or changed.
  const isUnknownTable = code === genericError && /\bescapement_/.test(error.message);
  const known = isUnknownTable
    ? unknownTable
    : codes.get(code === cannotOpen && !isWritable(path) ? readOnly : code);
  if (known === undefined) return error;
  return new EscapementError(known.code, `SQLite store ${path}: ${error.message}; ${known.advice}`, {
    cause: error,
  });
}
