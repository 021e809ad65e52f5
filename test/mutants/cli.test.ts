import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

function mutants(...args: string[]) {
  const cli = join(import.meta.dirname, "cli.ts");
  return spawnSync(process.execPath, [cli, ...args], { encoding: "utf8" });
}

test("a misspelt name or option of mutants is refused: none of them is no success", () => {
  const nobody = mutants("nosuchmutant");
  assert.deepEqual([nobody.status, nobody.stdout], [2, ""]);
  assert.match(nobody.stderr, /no mutant has nosuchmutant in its file or name/);
  const misspelt = mutants("--chek");
  assert.deepEqual([misspelt.status, misspelt.stdout], [2, ""]);
  assert.match(misspelt.stderr, /unknown option --chek/);
  assert.match(mutants("--check", "redis").stdout, /^\d+ mutants of \d+ files fit\n$/);
});
