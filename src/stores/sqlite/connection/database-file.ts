import {
  chmodSync,
  closeSync,
  fchmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  rmSync,
  type Stats,
  statSync,
} from "node:fs";
import { dirname, relative, resolve, sep } from "node:path";
import { describe, EscapementError } from "../../../errors.ts";

/** Permissions of a database file: its owner may read and write it, and no one may execute it. */
export function checkMode(value: unknown): number {
  if (value === undefined) return 0o600;
  const isMode = typeof value === "number" && Number.isInteger(value) && (value & ~0o666) === 0;
  if (isMode && (value & 0o600) === 0o600) return value;
  const got =
    typeof value === "number" && Number.isInteger(value) ? `0o${value.toString(8)}` : describe(value);
  throw new EscapementError(
    "invalid-option",
    `expected sqlite's mode to be the permissions of a file that its owner can write, such as 0o600 or 0o660, got ${got}`,
  );
}

/**
 * Creates the database file and its folder if they are missing, with these permissions whatever the umask says; existing ones
 * stay as they are. SQLite gives its `-wal` and `-shm` files the permissions of the database.
 */
export function prepareDatabaseFile(file: string, mode: number): void {
  makeFolder(file, mode);
  const existing = statusOf(file);
  if (existing === null) return createFile(behindLinks(file), mode);
  if (existing.isFile()) return;
  throw new EscapementError(
    "store-unavailable",
    `SQLite store ${file}: expected a file, got ${kindOf(existing)}; give another path`,
  );
}

function makeFolder(file: string, mode: number): void {
  const folder = dirname(file);
  try {
    const first = mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (first === undefined) return;
    // Users who may read the file must be able to enter its folder.
    const folderMode = mode | ((mode & 0o444) >> 2);
    let made = resolve(first);
    chmodSync(made, folderMode);
    for (const name of relative(made, folder).split(sep)) {
      made = resolve(made, name);
      chmodSync(made, folderMode);
    }
  } catch (error) {
    throw new EscapementError(
      "store-unavailable",
      `SQLite store ${file}: its folder cannot be created; create it, or give another path`,
      { cause: error },
    );
  }
}

/**
 * SQLite would make the file readable to everyone. It is created under another name first: closing a file drops every lock that this
 * process holds on it, so the file must be closed before anyone can open the database.
 */
function createFile(file: string, mode: number): void {
  const draft = `${file}-new-${crypto.randomUUID()}`;
  try {
    const handle = openSync(draft, "wx", 0o600);
    try {
      fchmodSync(handle, mode);
    } finally {
      closeSync(handle);
    }
    try {
      linkSync(draft, file);
    } finally {
      rmSync(draft);
    }
  } catch {
    // Another process was faster, or SQLite is about to report what is wrong. File systems without links have no permissions either.
  }
}

/** Where SQLite would create the file: a link may lead to one that is not there yet. */
function behindLinks(file: string): string {
  let place = file;
  for (let links = 0; links < mostLinks; links += 1) {
    if (lstatSync(place, { throwIfNoEntry: false })?.isSymbolicLink() !== true) break;
    place = resolve(dirname(place), readlinkSync(place));
  }
  return place;
}

/** As many as Linux follows. */
const mostLinks = 40;

function statusOf(file: string): Stats | null {
  try {
    return statSync(file, { throwIfNoEntry: false }) ?? null;
  } catch (error) {
    throw new EscapementError(
      "store-unavailable",
      `SQLite store ${file}: it cannot be accessed; check its path`,
      {
        cause: error,
      },
    );
  }
}

function kindOf(status: Stats): string {
  if (status.isDirectory()) return "a folder";
  if (status.isFIFO()) return "a pipe";
  return status.isSocket() ? "a socket" : "a device";
}
