import { readFileSync } from "node:fs";
import { descendants } from "../../testbed/process-tree.ts";

/** Clock ticks of the kernel in a second, as on every Linux that Node runs on. */
const ticksPerSecond = 100;

/** Processor time, in milliseconds, of the servers: everything that `race` has started, except for `racer` and what that has started. */
export function serverMs(race: number, racer: number): number {
  const own = new Set([racer, ...descendants(racer)]);
  return descendants(race)
    .filter((pid) => !own.has(pid))
    .reduce((sum, pid) => sum + processMs(pid), 0);
}

export function processMs(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in parentheses may hold anything; what follows it is plain.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return ((Number(fields[11]) + Number(fields[12])) * 1_000) / ticksPerSecond;
  } catch {
    return 0;
  }
}
