import assert from "node:assert/strict";
import { test } from "node:test";
import { fairShare } from "./ownership.ts";

test("shares are even, add up, and all relays agree on them", () => {
  for (const partitions of [1, 3, 16, 1_024]) {
    for (const many of [1, 2, 3, 7, 20]) {
      const relays = Array.from({ length: many }, (_, n) => `relay-${n}`);
      const shares = relays.map((owner) => fairShare(owner, relays, partitions));
      assert.equal(
        shares.reduce((sum, share) => sum + share, 0),
        partitions,
      );
      assert.ok(Math.max(...shares) - Math.min(...shares) <= 1);
    }
  }
});

test("a relay that is not yet seen by anybody counts itself", () => {
  assert.equal(fairShare("new", ["old"], 16), 8);
  assert.equal(fairShare("alone", [], 16), 16);
});
