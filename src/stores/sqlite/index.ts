import { EscapementError } from "../../errors.ts";
import { checkKnown, checkOneOf } from "../../options.ts";
import type { StoreContext, StoreFactory } from "../../store/opening.ts";
import type { Store } from "../../store/store.ts";
import { checkMode } from "./connection/database-file.ts";
import { type Engine, openFileEngine, openMemoryEngine } from "./connection/engine.ts";
import { openSqliteStore } from "./store.ts";

export { type SqliteInboxOptions, sqliteInbox } from "./inbox.ts";

export interface SqliteOptions {
  /** The database file; it and its folder are created if they are missing. `":memory:"` keeps everything in this process. */
  readonly path: string;
  /**
   * `"full"`: an acknowledged write survives a power failure. `"normal"`: faster, and never corrupt, but the last
   * writes before a power failure may be lost.
   *
   * @default "full"
   */
  readonly durability?: "full" | "normal";
  /**
   * The permissions of the files that the store creates, whatever the umask says; users who may read the file may also enter a folder that
   * the store creates. Existing files and folders keep theirs. `0o660` shares the database with a group.
   *
   * @default 0o600
   */
  readonly mode?: number;
}

/**
 * Keeps everything in one SQLite file, which any number of processes on this machine may share.
 *
 * @example
 * const app = createEscapement({ store: sqlite("app.db"), jobs: [invoice] });
 */
export function sqlite(pathOrOptions: string | SqliteOptions): StoreFactory {
  const options = resolve(pathOrOptions);
  if (options.path !== ":memory:") return { open: (context) => openStore(options, context) };
  let shared: Engine | undefined;
  return {
    async open(context) {
      shared ??= openMemoryEngine();
      return openSqliteStore(shared, context, null);
    },
  };
}

/** Opens a store by its address, for the heartbeat's thread. */
export async function openStore(options: unknown, context: StoreContext): Promise<Store> {
  const resolved = resolve(options);
  const engine = await openFileEngine(resolved, context);
  try {
    const address = { module: import.meta.url, options: { ...resolved, path: engine.path } };
    return await openSqliteStore(engine, context, address);
  } catch (error) {
    engine.close();
    throw error;
  }
}

function resolve(given: unknown): Required<SqliteOptions> {
  const options = typeof given === "string" ? { path: given } : given;
  if (typeof options !== "object" || options === null) {
    throw new EscapementError(
      "invalid-option",
      "expected the path of a SQLite file, or an object with a path",
    );
  }
  checkKnown(options, ["path", "durability", "mode"], "sqlite");
  const path = "path" in options ? options.path : undefined;
  if (typeof path !== "string" || path === "" || path.includes("\0") || isUrl(path)) {
    throw new EscapementError(
      "invalid-option",
      `expected sqlite's path to be the name of a file, got ${describePath(path)}`,
    );
  }
  const durability = "durability" in options ? options.durability : undefined;
  return {
    path,
    durability: checkOneOf(durability ?? "full", ["full", "normal"], "sqlite's durability"),
    mode: checkMode("mode" in options ? options.mode : undefined),
  };
}

/** A file of that name could be created, but it is almost certainly a mistake. */
function isUrl(path: string): boolean {
  return path.startsWith("sqlite:");
}

function describePath(path: unknown): string {
  if (typeof path !== "string") return typeof path;
  if (isUrl(path)) return `a URL; leave out "sqlite:", or pass the URL as store`;
  return path === "" ? "an empty string" : "a string with a null byte";
}
