import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** What was fetched once and is kept between runs. Servers run as another user, who must be able to read it. */
export function cacheFolder(): string {
  if (process.getuid?.() === 0) return "/var/cache/escapement-testbed";
  return join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "escapement-testbed");
}

/**
 * The folder `name` of the cache, filled by `fill` when it is not there yet. A folder that was filled halfway is never
 * seen: it gets its last name, which `fill` is told as well, when it is complete.
 */
export async function cached(
  name: string,
  fill: (folder: string, lastName: string) => Promise<void>,
): Promise<string> {
  const folder = join(cacheFolder(), name);
  if (existsSync(folder)) return folder;
  mkdirSync(cacheFolder(), { recursive: true, mode: 0o755 });
  const part = mkdtempSync(join(cacheFolder(), ".part-"));
  try {
    const filled = join(part, "filled");
    mkdirSync(filled, { mode: 0o755 });
    await fill(filled, folder);
    if (!existsSync(folder)) renameSync(filled, folder);
  } finally {
    rmSync(part, { recursive: true, force: true });
  }
  return folder;
}
