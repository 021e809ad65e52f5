import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { npmPackages } from "../testbed/npm.ts";
import { scratchFolder } from "./scratch.ts";

interface Runtime {
  readonly name: string;
  /** What npm has it as, and where the program is in it. */
  readonly npm: string;
  readonly version: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const platform = `${process.platform}-${process.arch}`;

const runtimes: readonly Runtime[] = [
  { name: "Bun", npm: `@oven/bun-${platform}`, version: "1.4.4", program: "bin/bun", args: [], env: {} },
  {
    name: "Deno",
    npm: `@deno/${platform}${process.platform === "linux" ? "-glibc" : ""}`,
    version: "2.9.6",
    program: "deno",
    args: ["run", "--allow-all", "--no-lock", "--no-remote"],
    env: { DENO_DIR: scratchFolder("deno-cache"), DENO_NO_UPDATE_CHECK: "1" },
  },
];

async function fetchProgram({ npm, version, program }: Runtime): Promise<string> {
  return join(await npmPackages([`${npm}@${version}`]), "node_modules", npm, program);
}

for (const runtime of runtimes) {
  const { name, args, env } = runtime;
  const fetched = await fetchProgram(runtime).catch((error: Error) => error);
  if (fetched instanceof Error && process.env["CI"] === "true") throw fetched;
  const skip = fetched instanceof Error && `${name} cannot be fetched: ${fetched.message}`;

  test(`the quick start runs on ${name}`, { skip }, async () => {
    const quickstart = join(import.meta.dirname, "../examples/quickstart.ts");
    const { stdout, stderr } = await promisify(execFile)(String(fetched), [...args, quickstart], {
      cwd: scratchFolder(name),
      env: { ...process.env, ...env },
      timeout: 120_000,
    });
    assert.match(stdout, /^Hello, Ada! \(attempt 1\)$/m);
    assert.doesNotMatch(stderr, /main loop/, "leases are renewed by a thread, as on Node");
  });
}
