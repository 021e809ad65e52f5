import { existsSync, statSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

/** A process that closes the database removes its -wal a moment before its -shm. */
const closingMs = 200;

/**
 * Checks, before a database is opened, for signs that its -wal was removed. That file holds the latest writes, and at first everything: SQLite
 * takes the database without it as complete, and says nothing.
 */
export async function findMissingWal(file: string): Promise<"removed" | "perhaps" | "no"> {
  const isRemoved = (): boolean => existsSync(`${file}-shm`) && !existsSync(`${file}-wal`);
  if (!existsSync(file) || existsSync(`${file}-wal`)) return "no";
  if (isRemoved()) {
    await delay(closingMs);
    if (isRemoved()) return "removed";
  }
  // Processes that use a database write there, and none empties it.
  return existsSync(`${file}-notices`) && statSync(`${file}-notices`).size > 0 ? "perhaps" : "no";
}

/** The message for it, once it is known whether the database has a schema. */
export function missingWalProblem(
  file: string,
  found: "removed" | "perhaps" | "no",
  isEmpty: boolean,
): string | null {
  if (found === "no" || (found === "perhaps" && !isEmpty)) return null;
  const sign =
    found === "removed"
      ? `${file}-shm exists without ${file}-wal`
      : `${file} is empty, and ${file}-notices is not`;
  return (
    `${sign}: the -wal file seems to have been removed after a crash, and with it ` +
    `${isEmpty ? "everything" : "the latest jobs"} in this database; put it back, or restore a backup. It must never be removed, or copied separately from the database`
  );
}
