import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { extname, join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { scratchFolder } from "../scratch.ts";

test("the quick start runs, and Node warns of its SQLite once at most", async () => {
  const ending = extname(import.meta.filename);
  const quickstart = join(import.meta.dirname, `../../examples/quickstart${ending}`);
  const options = { cwd: scratchFolder("quickstart"), timeout: 120_000 };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [quickstart], options);
  assert.match(stdout, /^Hello, Ada! \(attempt 1\)$/m);
  assert(stderr.split("ExperimentalWarning").length <= 2, stderr);
});
