import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { checkNode } from "./node-version.ts";

test("a Node that is too old is refused with what is needed, as package.json says it", () => {
  const { engines } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  assert.equal(engines.node, ">=22.18 <23 || >=24");
  for (const found of ["20.20.2", "22.17.9", "23.0.0", "23.11.1"]) {
    assert.throws(() => checkNode(found), {
      code: "node-unsupported",
      message: `escapement needs Node 22.18 or newer (not 23), and this is ${found}; install a current Node`,
    });
  }
  for (const found of ["22.18.0", "22.30.0", "24.0.0", "26.10.0", process.versions.node]) checkNode(found);
});
