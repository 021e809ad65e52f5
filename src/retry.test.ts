import assert from "node:assert/strict";
import { test } from "node:test";
import { backoffMs, defaultBackoff } from "./retry.ts";

test("the ladder is 30 s, 1 m, 2 m, 4 m, 8 m, then 15 m [A5]", () => {
  const ladder = [1, 2, 3, 4, 5, 6, 7, 100].map(
    (failures) => backoffMs(defaultBackoff, failures, 0.5) / 1_000,
  );
  assert.deepEqual(ladder, [30, 60, 120, 240, 480, 900, 900, 900]);
});

test("jitter moves a wait by up to its share either way, and never above the cap", () => {
  assert.equal(backoffMs(defaultBackoff, 1, 0), 27_000);
  assert.equal(backoffMs(defaultBackoff, 1, 1 - Number.EPSILON), 33_000);
  assert.equal(backoffMs(defaultBackoff, 50, 1 - Number.EPSILON), 900_000);
});

test("a fixed backoff does not grow", () => {
  const fixed = { type: "fixed", delayMs: 1_000, maxMs: 60_000, jitter: 0 } as const;
  assert.deepEqual(
    [1, 2, 9].map((failures) => backoffMs(fixed, failures, 0.3)),
    [1_000, 1_000, 1_000],
  );
});
