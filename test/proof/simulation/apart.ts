import { spawnSync } from "node:child_process";
import { join } from "node:path";

/** Runs a command of this folder in a process of its own: the test runner's hooks on every promise make a simulation three times slower. */
export function simulateApart(
  command: string,
  ...args: string[]
): { readonly status: number | null; readonly text: string } {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(import.meta.dirname, command), ...args],
    { encoding: "utf8", maxBuffer: 2 ** 28 },
  );
  return { status, text: stdout + stderr };
}
