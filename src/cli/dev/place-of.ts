import { relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

/** The first line of a folder's own sources that an error or its causes name, such as `jobs/hello.ts:7`; Node's messages often lack it. */
export function placeOf(error: unknown, folder: string): string | null {
  if (!(error instanceof Error)) return null;
  const below = placeOf(error.cause, folder);
  if (below !== null) return below;
  for (const [, url = "", line = ""] of (error.stack ?? "").matchAll(/(file:\/\/[^\s()]+?):(\d+)/g)) {
    const path = relative(folder, fileURLToPath(url));
    if (!path.startsWith("..") && !path.split(sep).includes("node_modules")) return `${path}:${line}`;
  }
  return null;
}
