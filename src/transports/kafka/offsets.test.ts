import assert from "node:assert/strict";
import { test } from "node:test";
import { PartitionOffsets } from "./offsets.ts";

test("an offset is due when everything before it has been dealt with", () => {
  const offsets = new PartitionOffsets(0);
  assert.equal(offsets.due, null);
  for (const offset of [5n, 6n, 8n]) assert.equal(offsets.take(offset), true);
  assert.equal(offsets.due, 5n);
  offsets.committed(5n);
  offsets.settle(6n);
  assert.equal(offsets.due, null, "5 is still in hand");
  offsets.settle(5n);
  assert.equal(offsets.due, 8n);
  offsets.settle(8n);
  assert.equal(offsets.due, 9n);
  offsets.committed(9n);
  assert.equal(offsets.due, null);
});

test("what is read again is not delivered again", () => {
  const offsets = new PartitionOffsets(0);
  for (const offset of [0n, 1n]) assert.equal(offsets.take(offset), true);
  offsets.settle(1n);
  assert.equal(offsets.take(0n), false, "it is in hand");
  assert.equal(offsets.take(1n), false, "it was dealt with");
  assert.equal(offsets.take(2n), true);
});
