import assert from "node:assert/strict";
import { test } from "node:test";
import { type PartitionGrant, slotCount } from "../store.ts";
import { fairShare, partitionCount } from "./share.ts";

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

test("a grant gives the true number of partitions away when the setting is another", () => {
  const grant = (partition: number, count: number): PartitionGrant => ({
    partition,
    epoch: 1,
    firstSlot: Math.floor((partition * slotCount) / count),
    endSlot: Math.floor(((partition + 1) * slotCount) / count),
    mark: null,
    named: [],
  });
  assert.equal(partitionCount(16, []), 16);
  assert.equal(partitionCount(16, [grant(3, 16)]), 16);
  assert.equal(partitionCount(32, [grant(3, 16)]), 16);
  assert.equal(partitionCount(4, [grant(29, 32)]), 32);
});
