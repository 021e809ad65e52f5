import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Capabilities, StoreContext } from "../../../store/opening.ts";
import { Listeners } from "../../listeners.ts";
import { isLocked, translateError } from "../errors.ts";
import { schemaVersion } from "../migrate.ts";
import { type Channel, fileChannel, processChannel } from "../notices.ts";
import { type Connection, connectionOf } from "./connection.ts";
import { prepareDatabaseFile } from "./database-file.ts";
import { findMissingWal, missingWalProblem } from "./missing-wal.ts";
import { DatabaseSync } from "./node-sqlite.ts";
import { lockDeadlineMs, lockTimeoutMs, pauseMs } from "./transactions.ts";

/** An open database, and how its changes are published. */
export interface Engine {
  /** Absolute, or ":memory:". */
  readonly path: string;
  /** The file does not exist, and was not to be created: calls can only report that. */
  readonly isMissing: boolean;
  readonly connection: Connection;
  /** Problems found when it was opened. */
  readonly problems: readonly string[];
  readonly capabilities: Capabilities;
  /** How to receive and publish what happens in a namespace. */
  channel(context: StoreContext): Channel;
  close(): void;
}

interface FileOptions {
  readonly path: string;
  readonly durability: "full" | "normal";
  readonly mode: number;
}

export async function openFileEngine(
  { path, durability, mode }: FileOptions,
  context: StoreContext,
): Promise<Engine> {
  const file = resolve(path);
  const mustExist = context.mustExist ?? false;
  const isMissing = mustExist && !existsSync(file);
  const found = await findMissingWal(file);
  if (!isMissing) prepareDatabaseFile(file, mode);
  const database = isMissing
    ? new DatabaseSync(":memory:")
    : await openDatabase(file, durability, mustExist ? [] : ["journal_mode = wal"]);
  const connection = connectionOf(database);
  const problem = found === "no" ? null : missingWalProblem(file, found, isEmpty(connection, file));
  if (problem !== null) context.log.warn({ file }, problem);
  return {
    path: file,
    isMissing,
    connection,
    problems: problem === null ? [] : [problem],
    capabilities: {
      transactions: true,
      listen: true,
      timePrecisionMs: 1,
      durability: durability === "full" ? "full" : "weak",
      acrossSlots: true,
    },
    channel: () => fileChannel(file, context),
    close: () => database.close(),
  };
}

async function openDatabase(
  file: string,
  durability: FileOptions["durability"],
  pragmas: readonly string[],
): Promise<DatabaseSync> {
  const since = performance.now();
  for (;;) {
    try {
      return openOnce(file, [...pragmas, `synchronous = ${durability}`]);
    } catch (error) {
      if (!isLocked(error) || performance.now() - since > lockDeadlineMs) throw translateError(error, file);
    }
    await delay(pauseMs());
  }
}

function isEmpty(connection: Connection, file: string): boolean {
  try {
    return schemaVersion(connection) === 0;
  } catch (error) {
    throw translateError(error, file);
  }
}

/** The journal mode is stored in the file; the other settings apply to the connection. */
function openOnce(file: string, pragmas: readonly string[]): DatabaseSync {
  const database = new DatabaseSync(file, { timeout: lockTimeoutMs, enableForeignKeyConstraints: false });
  try {
    const all = [...pragmas, "cache_size = -16000", "wal_autocheckpoint = 4000"];
    database.exec(all.map((pragma) => `pragma ${pragma};`).join(" "));
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** A database of this process, shared by everything that is opened through one factory. */
export function openMemoryEngine(): Engine {
  const database = new DatabaseSync(":memory:", { enableForeignKeyConstraints: false });
  const namespaces = new Map<string, Listeners>();
  return {
    path: ":memory:",
    isMissing: false,
    connection: connectionOf(database),
    problems: [],
    capabilities: {
      transactions: true,
      listen: false,
      timePrecisionMs: 1,
      durability: "none",
      acrossSlots: true,
    },
    channel: (context) => {
      const listeners = namespaces.get(context.namespace) ?? new Listeners(context.log);
      namespaces.set(context.namespace, listeners);
      return processChannel(listeners, context);
    },
    // Its data lives as long as the factory does.
    close() {},
  };
}
