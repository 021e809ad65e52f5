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

/** Runs the command as a person does: on a terminal of so many columns, typing what is asked for. */
export function onTerminal(
  cwd: string,
  args: readonly string[],
  { columns = 80, rows = 24, env = {}, type = [] }: TerminalOptions = {},
): Promise<{ code: number; output: string }> {
  const quoted = [process.execPath, main, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`);
  const line = `stty cols ${columns} rows ${rows}; ${quoted.join(" ")}`;
  const clean = { ...process.env };
  for (const name of ["NO_COLOR", "FORCE_COLOR", "NODE_DISABLE_COLORS", "CI"]) delete clean[name];
  const child = spawn("/usr/bin/script", ["-qec", line, "/dev/null"], {
    cwd,
    env: { ...clean, TERM: "xterm-256color", ...env },
    timeout: patienceMs,
  });
  return new Promise((resolve, reject) => {
    let output = "";
    const waiting = [...type];
    child.stdout.on("data", (data: Buffer) => {
      output += data.toString();
      const [next] = waiting;
      if (next === undefined || !next[0].test(output)) return;
      waiting.shift();
      child.stdin.write(next[1]);
    });
    child.once("error", reject);
    child.once("close", (code) => resolve({ code: code ?? -1, output: output.replaceAll("\r\n", "\n") }));
  });
}

/** What stands there, without colours and cursor movements. */
export function plainText(output: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken away.
  return output.replaceAll(/\u001b\[[0-9;?]*[a-zA-Z]/g, "").replaceAll("\r", "\n");
}
