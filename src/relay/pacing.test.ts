import assert from "node:assert/strict";
import { test } from "node:test";
import { BacklogRate, CheckpointPace, StoreTime } from "./pacing.ts";

test("the store's time is never taken for later than it is [B7]", () => {
  const time = new StoreTime();
  assert.equal(time.atLeast(5), Number.NEGATIVE_INFINITY, "nothing is due while it is unknown");
  // Asked at 100, answered at 140; the store read its clock somewhere between.
  time.update(new Date(1_000), 140);
  assert.equal(time.atLeast(140), 1_000);
  assert.equal(time.atLeast(150), 1_010);
  assert.equal(time.reachedAtMs(new Date(1_010)), 150);
});

test("the first checkpoint after a rest goes at once, the next at its time", () => {
  const pace = new CheckpointPace(0);
  assert.equal(pace.waitMs(1_000, true), 0);
  pace.begin(1_000);
  pace.end(1_005);
  assert.deepEqual([pace.waitMs(1_005, true), pace.waitMs(1_020, true)], [15, 0]);
  assert.equal(pace.waitMs(1_005, false), 35, "while nothing is late it has until 1040");
  assert.equal(pace.waitMs(2_000, false), 0);
});

test("a slow store gets fewer checkpoints, within bounds", () => {
  const pace = new CheckpointPace(0);
  pace.begin(1_000);
  pace.end(1_016);
  assert.equal(pace.waitMs(1_016, true), 8, "every 32 ms: the next is at 1024");
  pace.begin(1_000);
  pace.end(1_400);
  assert.equal(pace.waitMs(1_000, true), 50);
});

test("partitions are spread over groups that write at different moments", () => {
  const at = (partition: number): number => {
    const pace = new CheckpointPace(partition);
    pace.begin(8_000);
    pace.end(8_001);
    return 8_001 + pace.waitMs(8_001, false);
  };
  assert.deepEqual([0, 1, 2, 3, 4, 5].map(at), [8_080, 8_020, 8_040, 8_060, 8_080, 8_020]);
});

test("a backlog goes at its rate, in portions, whatever was not used before [B9]", () => {
  const rate = new BacklogRate(50, 0);
  const takeAll = (now: number): number => {
    let many = 0;
    while (rate.take(now)) many += 1;
    return many;
  };
  assert.equal(takeAll(0), 5);
  assert.equal(rate.waitMs(), 100);
  assert.equal(takeAll(99), 0);
  assert.equal(takeAll(100), 5);
  let total = 0;
  for (let now = 150; now <= 10_100; now += 50) total += takeAll(now);
  assert.equal(total, 500);
  assert.equal(takeAll(60_000), 10, "a pause is not made up for");
  const unlimited = new BacklogRate(Number.POSITIVE_INFINITY, 0);
  assert.ok(Array.from({ length: 1_000 }).every(() => unlimited.take(0)));
});
