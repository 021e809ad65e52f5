import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { checkNode } from "./node-version.ts";

test("a Node that is too old is refused with what is needed, as package.json says it", () => {
  const { engines } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  const oldest = String(engines.node).replace(">=", "");
  assert.throws(() => checkNode("20.20.2"), {
    code: "node-unsupported",
    message: `escapement needs Node ${oldest} or newer, and this is 20.20.2; install a current Node`,
  });
  assert.throws(() => checkNode("22.17.9"), { code: "node-unsupported" });
  for (const found of [`${oldest}.0`, "22.30.0", "24.0.0", process.versions.node]) checkNode(found);
});
