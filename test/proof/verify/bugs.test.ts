import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testbed } from "../../../testbed/index.ts";
import { isFull } from "../../full.ts";
import { bugs } from "./bugs.ts";
import { hunt } from "./hunt.ts";

/** The quickest to show themselves; `npm run verify:bugs` hunts all of them. */
const quick = isFull ? ["acknowledge before run", "ledger write failing open"] : ["acknowledge before run"];
/** The same of the relay; it needs a broker. */
const quickRelay = isFull ? ["rollback counted as attempt"] : [];
const { skip } = await testbed.redis();

describe("a bug put there on purpose is caught", () => {
  for (const bug of bugs.filter(({ name }) => [...quick, ...quickRelay].includes(name))) {
    test(bug.name, { skip: bug.routed === true && skip }, async () => {
      const { caught, found } = await hunt(bug, 1);
      assert.ok(caught, `expected one of ${bug.breaks.join(", ")}, found ${JSON.stringify(found)}`);
    });
  }

  test("there are at least twelve of them, and five more of the relay", () => {
    const relay = bugs.filter(({ routed }) => routed === true);
    assert.deepEqual([bugs.length - relay.length >= 12, relay.length >= 5], [true, true]);
  });
});
