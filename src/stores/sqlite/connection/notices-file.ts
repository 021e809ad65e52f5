import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  openSync,
  type Stats,
  statSync,
} from "node:fs";
import { EscapementError } from "../../../errors.ts";

// A link is refused, not followed, and a pipe without a reader does not block. Windows has neither flag.
const { O_RDWR, O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
const flags = O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK;
const ownerOnly = 0o600;

/**
 * Opens the file of notices, creating it if it is missing, for users of the database only. A file that
 * another user may have planted is refused: it would be written to, and truncated once it is large.
 */
export function openNoticesFile(path: string, databasePath: string): number {
  const database = statSync(databasePath);
  for (let attempt = 0; ; attempt += 1) {
    try {
      return openExisting(path, database);
    } catch (error) {
      if (!hasCode(error, "ENOENT") || attempt > 0) throw error;
    }
    try {
      return create(path, database);
    } catch (error) {
      // Another process was faster.
      if (!hasCode(error, "EEXIST")) throw error;
    }
  }
}

function create(path: string, database: Stats): number {
  const file = openSync(path, flags | O_CREAT | O_EXCL, ownerOnly);
  return keepOpenIf(file, () => {
    // Like SQLite with its own files: root hands them to the owner of the database.
    if (process.geteuid?.() === 0) fchownSync(file, database.uid, database.gid);
    fchmodSync(file, database.mode & 0o666);
  });
}

function openExisting(path: string, database: Stats): number {
  const file = openSync(path, flags);
  return keepOpenIf(file, () => {
    const reason = whyNotOurs(fstatSync(file), database);
    if (reason === null) return;
    throw new EscapementError("store-unavailable", `${path} is not used: ${reason}; remove it`);
  });
}

function whyNotOurs(file: Stats, database: Stats): string | null {
  if (!file.isFile()) return "it is not a regular file";
  if (file.nlink !== 1) return `it has ${file.nlink} names, so it may be another file of this user`;
  const uid = process.geteuid?.();
  if (uid === undefined || file.uid === uid || file.uid === database.uid) return null;
  const isShared = (database.mode & 0o020) !== 0 && file.gid === database.gid;
  return isShared ? null : `it belongs to user ${file.uid}, the database to user ${database.uid}`;
}

function keepOpenIf(file: number, check: () => void): number {
  try {
    check();
    return file;
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
