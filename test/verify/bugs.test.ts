import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { bugs } from "./bugs.ts";
import { hunt } from "./hunt.ts";

/** The quickest to show themselves; `npm run verify:bugs` hunts all of them. */
const quick = ["acknowledge before run", "a cancelled job is completed", "ledger write failing open"];

describe("a bug put there on purpose is caught", () => {
  for (const bug of bugs.filter(({ name }) => quick.includes(name))) {
    test(bug.name, async () => {
      const { caught, found } = await hunt(bug, 1);
      assert.ok(caught, `expected one of ${bug.breaks.join(", ")}, found ${JSON.stringify(found)}`);
    });
  }

  test("there are at least twelve of them", () => {
    assert.ok(bugs.length >= 12);
  });
});
