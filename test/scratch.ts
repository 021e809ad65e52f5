import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder of a test file's own, which goes when its process ends. */
export function scratchFolder(name = "test"): string {
  const folder = mkdtempSync(join(tmpdir(), `escapement-${name}-`));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
