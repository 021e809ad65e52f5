import assert from "node:assert/strict";
import { test } from "node:test";
import { sleep } from "../clock.ts";
import { VirtualClock } from "./virtual-clock.ts";

test("timers fire in the order of their time, then of their making, each at its own time", async () => {
  const clock = new VirtualClock(new Date(1_000));
  const fired: string[] = [];
  clock.after(20, () => fired.push(`b${clock.now()}`));
  clock.after(10, () => fired.push(`a${clock.now()}`));
  clock.after(20, () => fired.push(`c${clock.monotonic()}`));
  await clock.advance(100);
  assert.deepEqual(fired, ["a1010", "b1020", "c20"]);
  assert.equal(clock.now(), 1_100);
});

test("promises settle between two timers, and timers made on the way fire in the same advance", async () => {
  const clock = new VirtualClock(new Date(0));
  const seen: number[] = [];
  const loop = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn += 1) {
      await sleep(clock, 10);
      seen.push(clock.now());
    }
  };
  const done = loop();
  await clock.advance(1_000);
  await done;
  assert.deepEqual(seen, [10, 20, 30]);
});

test("a jump moves the wall clock alone and fires nothing", async () => {
  const clock = new VirtualClock(new Date(0));
  let fired = false;
  clock.after(1_000, () => {
    fired = true;
  });
  clock.jump(3_600_000);
  await clock.advance(10);
  assert.equal(fired, false);
  assert.equal(clock.now(), 3_600_010);
  assert.equal(clock.monotonic(), 10);
});

test("a timer that is called off does not fire; nextTimerMs tells of the rest", async () => {
  const clock = new VirtualClock();
  const cancel = clock.after(5, () => assert.fail("it was called off"));
  clock.after(7, () => undefined);
  cancel();
  assert.equal(clock.nextTimerMs, 7);
  await clock.advance(7);
  assert.equal(clock.nextTimerMs, null);
});

test("deferred callbacks run without any advance, in order, after the microtasks", async () => {
  const clock = new VirtualClock();
  const order: string[] = [];
  clock.defer(() => order.push("first"));
  clock.defer(() => clock.defer(() => order.push("third")));
  clock.defer(() => order.push("second"));
  queueMicrotask(() => order.push("microtask"));
  await clock.settle();
  assert.deepEqual(order, ["microtask", "first", "second", "third"]);
});
