import assert from "node:assert/strict";
import { test } from "node:test";
import { depthsOf, type PlainGroup, plainParts } from "./queue-depth.ts";

const now = 1_000;
const most = 10;

function depthOf(groups: readonly Omit<PlainGroup, "queue">[], waiting: number) {
  const own = groups.map((group) => ({ queue: "q", ...group }));
  const [depth] = depthsOf(plainParts(own, most, new Map([["q", waiting]])), now);
  return [depth?.due, depth?.later, depth?.oldestDueAt?.getTime() ?? null, depth?.isExact];
}

test("where all that are due were seen, the others are due later", () => {
  assert.deepEqual(depthOf([{ due: 3, later: 10, firstAt: 5 }], 50), [3, 47, 5, true]);
});

test("where all that are due later were seen, the others are due", () => {
  const groups = [
    { due: 10, later: 0, firstAt: 9 },
    { due: 2, later: 4, firstAt: 7 },
  ];
  assert.deepEqual(depthOf(groups, 60), [56, 4, 7, true]);
});

test("where neither were all seen, at least those that were seen are due, and it says that it does not know", () => {
  assert.deepEqual(depthOf([{ due: 10, later: 10, firstAt: 1 }], 100), [10, 90, 1, false]);
});

test("what nobody has looked at yet is due later", () => {
  assert.deepEqual(depthOf([], 2), [0, 2, null, true]);
});
