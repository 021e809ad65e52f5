import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { newFolder } from "./behaviour/stores.ts";

test("each recipe takes effect once although its handler runs twice, and checking before acting does not [C6]", async () => {
  const { NODE_TEST_CONTEXT: _context, ...env } = process.env;
  const example = join(import.meta.dirname, "../examples/recipes.ts");
  const { stdout } = await promisify(execFile)(process.execPath, [example], {
    cwd: newFolder(),
    env,
    timeout: 60_000,
  });
  assert.deepEqual(stdout.trim().split("\n"), [
    "natural idempotency: cancelled",
    "token in one transaction: ada has 5 cents",
    "idempotent API: 1 charge",
    "unique row before an e-mail: 1 e-mail",
    "payment attempt under its key: 1 payment",
    "outbound event log: 1 event",
    "check, then act: 2 e-mails, which is one too many",
  ]);
});
