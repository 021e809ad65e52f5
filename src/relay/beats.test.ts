import assert from "node:assert/strict";
import { test } from "node:test";
import { Beats } from "./beats.ts";

test("the first checkpoint after a rest goes at once, the next at its beat", () => {
  const beats = new Beats(0, 80);
  assert.equal(beats.waitMs(1_000, true), 0);
  beats.begin(1_000);
  beats.end(1_005);
  assert.deepEqual([beats.waitMs(1_005, true), beats.waitMs(1_020, true)], [15, 0]);
  assert.equal(beats.waitMs(1_005, false), 35, "while nothing is late it has until 1040");
  assert.equal(beats.waitMs(2_000, false), 0);
});

test("a store that takes long over checkpoints gets fewer, within bounds", () => {
  const beats = new Beats(0, 80);
  beats.begin(1_000);
  beats.end(1_016);
  assert.equal(beats.waitMs(1_016, true), 8, "every 32 ms: the next is at 1024");
  beats.begin(1_000);
  beats.end(1_400);
  assert.equal(beats.waitMs(1_000, true), 50);
});

test("partitions have their beats in turns, and several of them each", () => {
  const at = (partition: number): number => {
    const beats = new Beats(partition, 80);
    beats.begin(8_000);
    beats.end(8_001);
    return 8_001 + beats.waitMs(8_001, false);
  };
  assert.deepEqual([0, 1, 2, 3, 4, 5].map(at), [8_080, 8_020, 8_040, 8_060, 8_080, 8_020]);
});
