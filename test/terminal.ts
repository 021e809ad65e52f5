import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { main } from "./command.ts";

/** Why there is no terminal to test with, or false: `script` of util-linux makes one. */
export const noTerminal: string | false =
  process.platform === "linux" && existsSync("/usr/bin/script")
    ? false
    : "script of util-linux is not on this machine";

export interface TerminalOptions {
  readonly columns?: number;
  readonly rows?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** What to type, each when the output so far matches. */
  readonly type?: readonly (readonly [when: RegExp, keys: string])[];
}

const patienceMs = 90_000;

/** A command on a terminal, and what stands there so far. */
export interface Terminal {
  readonly output: string;
  type(keys: string): void;
  readonly ended: Promise<number>;
}

/** Starts the command as a person does: on a terminal of so many columns. */
export function openTerminal(
  cwd: string,
  args: readonly string[],
  { columns = 80, rows = 24, env = {}, type = [] }: TerminalOptions = {},
): Terminal {
  const quoted = [process.execPath, main, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`);
  // The shell makes way for the command: dash would take Ctrl-C too, and its end for that of the command.
  const line = `stty cols ${columns} rows ${rows}; exec ${quoted.join(" ")}`;
  const clean = { ...process.env };
  for (const name of ["NO_COLOR", "FORCE_COLOR", "NODE_DISABLE_COLORS", "CI"]) delete clean[name];
  const child = spawn("/usr/bin/script", ["-qec", line, "/dev/null"], {
    cwd,
    env: { ...clean, TERM: "xterm-256color", ...env },
    timeout: patienceMs,
  });
  let output = "";
  const waiting = [...type];
  child.stdout.on("data", (data: Buffer) => {
    output += data.toString();
    const [next] = waiting;
    if (next === undefined || !next[0].test(output)) return;
    waiting.shift();
    child.stdin.write(next[1]);
  });
  const ended = new Promise<number>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve(code ?? -1));
  });
  return {
    get output() {
      return output.replaceAll("\r\n", "\n");
    },
    type: (keys) => void child.stdin.write(keys),
    ended,
  };
}

/** Runs the command as a person does, typing what is asked for, to its end. */
export async function onTerminal(
  cwd: string,
  args: readonly string[],
  options: TerminalOptions = {},
): Promise<{ code: number; output: string }> {
  const terminal = openTerminal(cwd, args, options);
  const code = await terminal.ended;
  return { code, output: terminal.output };
}

/** What stands there, without colours and cursor movements. */
export function plainText(output: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken away.
  return output.replaceAll(/\u001b\[[0-9;?]*[a-zA-Z]/g, "").replaceAll("\r", "\n");
}
