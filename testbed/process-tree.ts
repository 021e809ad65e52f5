import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** The processes that `pid` has started, and those that they have, ended ones left out. */
export function descendants(pid: number): number[] {
  const parents = process.platform === "linux" ? fromProc() : fromPs();
  const found = [pid];
  // Grows while it is walked: children of children are looked for as well.
  for (const parent of found)
    found.push(...parents.filter(([, its]) => its === parent).map(([child]) => child));
  return found.slice(1);
}

export function isRunning(pid: number): boolean {
  if (process.platform === "linux") return statOf(pid) !== undefined;
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Signals a process, or does nothing when it has ended. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Small images have no `ps`. */
function fromProc(): (readonly [pid: number, parent: number])[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const stat = statOf(Number(name));
      return stat ? [[Number(name), stat.parent] as const] : [];
    });
}

/** Undefined when it has ended, also when it is a zombie that nobody has waited for. */
function statOf(pid: number): { parent: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name stands in parentheses and may have spaces and parentheses of its own.
    const [state, parent] = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return state === "Z" || state === "X" ? undefined : { parent: Number(parent) };
  } catch {
    return undefined;
  }
}

function fromPs(): (readonly [pid: number, parent: number])[] {
  const lines = execFileSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" }).trim().split("\n");
  return lines.map((line) => {
    const [pid, parent] = line.trim().split(/\s+/);
    return [Number(pid), Number(parent)] as const;
  });
}
