import { type ChildProcess, type StdioOptions, spawn, spawnSync } from "node:child_process";
import type { Account } from "./account.ts";

/** Something to run, as it is handed to the operating system. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly account: Account | undefined;
  /** Set when `file` is the Docker client and signals must go to the container instead. */
  readonly container: string | undefined;
}

const underway = new Set<ChildProcess>();
let endsWithParent: boolean | undefined;

/** Starts a command so that, where the kernel can do that, it ends when this process does, even by SIGKILL. */
export function launch(command: Command, stdio: StdioOptions): ChildProcess {
  const wrapper =
    command.container === undefined && canEndWithParent() ? ["setpriv", "--pdeathsig", "KILL", "--"] : [];
  const [file = command.file, ...args] = [...wrapper, command.file, ...command.args];
  const child = spawn(file, args, {
    stdio,
    env: { ...process.env, ...command.env },
    ...(command.account ?? {}),
  });
  underway.add(child);
  child.once("close", () => underway.delete(child));
  child.once("error", () => underway.delete(child));
  return child;
}

/** Runs a command to its end and gives back what it printed. */
export async function run(command: Command, timeoutMs = 60_000): Promise<string> {
  const child = launch(command, ["ignore", "pipe", "pipe"]);
  const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
  const output = { stdout: "", stderr: "" };
  child.stdout?.on("data", (chunk) => (output.stdout += chunk));
  child.stderr?.on("data", (chunk) => (output.stderr += chunk));
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", resolve);
    });
    if (code === 0) return output.stdout.trim();
  } finally {
    clearTimeout(timer);
  }
  const said = (output.stderr || output.stdout).trim().split("\n").slice(-5).join("\n");
  throw new Error(`${command.file} ${command.args.join(" ")} failed: ${said || "it was killed"}`);
}

/** Ends whatever still runs, at the end of the holder. */
export function killUnderway(): void {
  for (const child of underway) child.kill("SIGKILL");
}

function canEndWithParent(): boolean {
  endsWithParent ??=
    process.platform === "linux" && spawnSync("setpriv", ["--pdeathsig", "KILL", "--", "true"]).status === 0;
  return endsWithParent;
}
