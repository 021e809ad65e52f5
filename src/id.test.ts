import assert from "node:assert/strict";
import { test } from "node:test";
import { newId } from "./id.ts";

const nowMs = Date.UTC(2026, 0, 1);

test("an id is a version 7 UUID of its millisecond", () => {
  const id = newId(nowMs);
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16), nowMs);
});

test("ids rise in the order in which they are made, within a millisecond and from one to the next", () => {
  const ids = Array.from({ length: 10_000 }, (_, n) => newId(nowMs + Math.floor(n / 4_000)));
  assert.deepEqual(ids.toSorted(), ids);
  assert.equal(new Set(ids).size, ids.length);
});

test("two ids of neighbouring starts have no more in common than their millisecond", () => {
  const counters = Array.from({ length: 100 }, (_, n) => newId(nowMs + n).slice(14, 23));
  assert(new Set(counters).size > 90, "the counter starts at random in every millisecond");
});
