import { type FSWatcher, readdirSync, statSync, watch } from "node:fs";
import { extname, join, relative } from "node:path";
import { EscapementError, recordError } from "../../errors.ts";

/** Everything else that is written beside the sources, such as a store in a file and what handlers write, changes no program. */
const endings = new Set([".ts", ".mts", ".cts", ".js", ".mjs", ".cjs", ".json", ".yaml", ".yml", ".sql"]);
/** Each takes a system handle, and those are limited. */
const mostFolders = 5_000;
/** One save is often several events, and a checkout is many saves. */
const quietMs = 100;

/**
 * Reports sources that change in a folder and below it, except in `node_modules`, `dist` and folders whose names begin with a dot. Each
 * folder is watched by itself: on Linux, Node's recursive watch would go through `node_modules` too.
 */
export class SourceWatcher {
  readonly #root: string;
  readonly #folders = new Map<string, FSWatcher>();
  readonly #changed = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #report: (() => void) | null = null;

  constructor(root: string) {
    this.#root = root;
    try {
      this.#watch(root);
    } catch (error) {
      this.close();
      if (error instanceof EscapementError) throw error;
      throw new EscapementError("invalid-option", `cannot watch ${root}: ${recordError(error).message}`, {
        cause: error,
      });
    }
  }

  /** The files that have changed, from the root, once none has changed for a moment; none if the signal fires first. */
  async next(signal: AbortSignal): Promise<readonly string[]> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#report = resolve;
    const leave = (): void => resolve();
    signal.addEventListener("abort", leave);
    if (this.#changed.size > 0) this.#reportWhenQuiet();
    if (!signal.aborted) await promise;
    signal.removeEventListener("abort", leave);
    this.#report = null;
    return signal.aborted ? [] : this.take();
  }

  /** The files that have changed and were not reported yet. */
  take(): readonly string[] {
    const files = [...this.#changed].sort();
    this.#changed.clear();
    return files;
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const watcher of this.#folders.values()) watcher.close();
    this.#folders.clear();
  }

  /** @returns the sources that are in it. */
  #watch(folder: string): string[] {
    this.#unwatch(folder);
    if (this.#folders.size >= mostFolders) {
      throw new EscapementError(
        "invalid-option",
        `${this.#root} has more than ${mostFolders} folders to watch; move the config to its own folder`,
      );
    }
    const watcher = watch(folder, (_, name) => name !== null && this.#look(folder, name));
    // The folder is gone; the one above it reports that.
    watcher.on("error", () => watcher.close());
    this.#folders.set(folder, watcher);
    // Watched first, listed second: a file that is made in between is seen by one of the two.
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return isIgnored(entry.name) ? [] : this.#watch(path);
      return endings.has(extname(entry.name)) ? [path] : [];
    });
  }

  #unwatch(folder: string): void {
    this.#folders.get(folder)?.close();
    this.#folders.delete(folder);
  }

  #look(folder: string, name: string): void {
    const path = join(folder, name);
    if (endings.has(extname(name))) return this.#note([path]);
    if (isIgnored(name)) return;
    try {
      if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) this.#note(this.#watch(path));
      else this.#unwatch(path);
    } catch {
      // It came and went, or there are too many now: what is watched already still is.
    }
  }

  #note(paths: readonly string[]): void {
    if (paths.length === 0) return;
    for (const path of paths) this.#changed.add(relative(this.#root, path));
    this.#reportWhenQuiet();
  }

  #reportWhenQuiet(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#report?.(), quietMs);
  }
}

function isIgnored(folderName: string): boolean {
  return folderName.startsWith(".") || folderName === "node_modules" || folderName === "dist";
}
