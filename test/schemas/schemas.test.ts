import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { schemaDumps } from "./dump.ts";

const root = new URL("../../", import.meta.url);

describe("the schema that migrations make", async () => {
  for (const { path, skip, make } of await schemaDumps()) {
    test(`is that of ${path}`, { skip }, async () => {
      const expected = readFileSync(new URL(path, root), "utf8");
      assert.equal(
        await make(),
        expected,
        `${path} is stale: run \`npm run schemas\` and look at the difference`,
      );
    });
  }
});
