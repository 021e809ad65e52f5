import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** The command, as a program of its own. */
export const main = join(import.meta.dirname, "../src/cli/main.ts");

/** One that takes longer does not end by itself; its code is then -1. */
const patienceMs = 60_000;

export function escapement(
  cwd: string,
  ...args: string[]
): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    const options = { cwd, timeout: patienceMs };
    const child = execFile(process.execPath, [main, ...args], options, (_, stdout, stderr) => {
      resolve({ code: child.exitCode ?? -1, stdout, stderr });
    });
  });
}

/**
 * Writes the settings that the command finds in a folder: a store in a file, and jobs.
 *
 * @param jobs source of what stands in the list of jobs; `defineJob`, `createEscapement` and `hook` (a route to a port) are there.
 */
export function configure(folder: string, jobs: string, { settings = "" } = {}): void {
  const source = (path: string): string => JSON.stringify(join(import.meta.dirname, "../src", path));
  writeFileSync(
    join(folder, "escapement.config.ts"),
    `import { createEscapement, defineJob } from ${source("index.ts")};
     import { http } from ${source("transports/http/index.ts")};
     const secret = "whsec_" + Buffer.alloc(24).toString("base64");
     const hook = (port, more) => http({ url: "http://127.0.0.1:" + port + "/", secret, allow: ["127.0.0.1"], ...more });
     export default { store: "sqlite:app.db", jobs: [${jobs}], ${settings} };`,
  );
}
