import assert from "node:assert/strict";
import { test } from "node:test";
import { RepeatDelay } from "./repeat-delay.ts";

test("each repetition waits twice as long, up to the limit, until something came of one", () => {
  const delay = new RepeatDelay();
  const next = (many: number) => Array.from({ length: many }, () => delay.nextMs(1_000));
  assert.deepEqual(next(8), [20, 40, 80, 160, 320, 640, 1_000, 1_000]);
  assert.equal(next(100).at(-1), 1_000);
  delay.reset();
  assert.deepEqual(next(2), [20, 40]);
});
