import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { npmPackages } from "../testbed/npm.ts";
import { scratchFolder } from "./scratch.ts";

const name = `@oven/bun-${process.platform}-${process.arch}`;
const version = "1.4.4";

async function fetchBun(): Promise<{ readonly bun: string; readonly skip: false | string }> {
  try {
    const folder = await npmPackages([`${name}@${version}`]);
    return { bun: join(folder, "node_modules", name, "bin/bun"), skip: false };
  } catch (error) {
    if (process.env["CI"] === "true") throw error;
    return { bun: "", skip: `Bun cannot be fetched: ${(error as Error).message}` };
  }
}

const { bun, skip } = await fetchBun();

test("the quick start runs on Bun", { skip }, async () => {
  const quickstart = join(import.meta.dirname, "../examples/quickstart.ts");
  const { stdout, stderr } = await promisify(execFile)(bun, [quickstart], {
    cwd: scratchFolder("bun"),
    timeout: 120_000,
  });
  assert.match(stdout, /^Hello, Ada! \(attempt 1\)$/m);
  assert.doesNotMatch(stderr, /main loop/, "leases are renewed by a thread, as on Node");
});
