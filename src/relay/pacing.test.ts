import assert from "node:assert/strict";
import { test } from "node:test";
import type { PublishResult } from "../transport.ts";
import { DrainRate } from "./drain-rate.ts";
import { Gate } from "./gate.ts";
import { StoreTime } from "./store-time.ts";

const refused: PublishResult = { kind: "refused", error: new Error("no"), permanent: false };

test("B7: the store's time is never taken for later than it is", () => {
  const time = new StoreTime();
  assert.equal(time.atLeast(5), Number.NEGATIVE_INFINITY, "nothing is due while nobody knows");
  // Asked at 100, answered at 140; the store read its clock somewhere between.
  time.heard(new Date(1_000), 140);
  assert.equal(time.atLeast(140), 1_000);
  assert.equal(time.atLeast(150), 1_010);
  assert.equal(time.reachedAtMs(new Date(1_010)), 150);
});

test("a gate closes for longer each time nothing gets through, and narrows", () => {
  const gate = new Gate();
  assert.deepEqual([gate.isOpen(0), gate.width(100)], [true, 100]);
  assert.equal(gate.heard([refused, refused], 0, 0), 100);
  assert.deepEqual([gate.isOpen(99), gate.isOpen(100), gate.width(100)], [false, true, 50]);
  assert.equal(gate.heard([refused], 100, 100), 200);
  assert.equal(gate.width(100), 25);
  for (let n = 0; n < 40; n += 1) gate.heard([refused], 300, 300);
  assert.deepEqual([gate.width(100), gate.isOpen(5_300)], [1, true], "all is bounded");
  assert.equal(gate.heard([refused, { kind: "acknowledged" }], 6_000, 6_000), 0);
  assert.equal(gate.width(100), 100);
});

test("batches that were under way together close a gate once", () => {
  const gate = new Gate();
  for (let n = 0; n < 16; n += 1) gate.heard([refused], n, 50 + n);
  assert.deepEqual([gate.isOpen(149), gate.isOpen(150), gate.width(100)], [false, true, 50]);
  assert.equal(gate.heard([{ ...refused, retryAfterMs: 500 } as PublishResult], 20, 160), 500);
  assert.equal(gate.width(100), 50, "what a receiver asks for is no failure more");
  assert.equal(gate.heard([refused], 660, 670), 200);
});

test("a gate opens as soon as something gets through, however long it was to be closed", () => {
  const gate = new Gate();
  for (let n = 0; n < 10; n += 1) gate.heard([refused], 0, 0);
  assert.deepEqual([gate.isOpen(4_999), gate.width(100)], [false, 1]);
  assert.equal(gate.heard([{ kind: "acknowledged" }], 0, 10), 0);
  assert.deepEqual([gate.isOpen(10), gate.width(100)], [true, 100]);
  assert.equal(gate.heard([refused], 20, 20), 100, "and what is refused now closes it for a moment");
});

test("a gate stays closed as long as the receiver asks, within bounds", () => {
  const gate = new Gate();
  assert.equal(gate.heard([{ ...refused, retryAfterMs: 3_000 } as PublishResult], 0, 0), 3_000);
  assert.equal(gate.heard([{ ...refused, retryAfterMs: 1e9 } as PublishResult], 0, 0), 5_000);
});

test("B9: a backlog goes at its rate, in portions, whatever was not used before", () => {
  const rate = new DrainRate(50, 0);
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
  const unlimited = new DrainRate(Number.POSITIVE_INFINITY, 0);
  assert.ok(Array.from({ length: 1_000 }).every(() => unlimited.take(0)));
});
