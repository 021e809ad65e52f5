import assert from "node:assert/strict";
import { test } from "node:test";
import { seededRandom } from "../../../testing/seeded-random.ts";
import { Sorted } from "./sorted.ts";

test("a sorted list agrees with a plain sorted array through thousands of changes", () => {
  const random = seededRandom(1);
  const sorted = new Sorted<number>((a, b) => a - b);
  let plain: number[] = [];
  for (let round = 0; round < 6_000; round += 1) {
    const value = Math.floor(random() * 4_000);
    if (plain.includes(value)) {
      assert.equal(sorted.delete(value), true);
      plain = plain.filter((one) => one !== value);
    } else {
      assert.equal(sorted.delete(value), false);
      sorted.add(value);
      plain.push(value);
    }
    if (round % 500 !== 0) continue;
    plain.sort((a, b) => a - b);
    assert.deepEqual([...sorted.upward(null)], plain);
    assert.deepEqual([...sorted.downward(null)], plain.toReversed());
    assert.equal(sorted.first(), plain[0]);
    for (const key of [-1, value, 2_000.5, 9_999]) {
      const above = plain.filter((one) => one > key);
      assert.deepEqual([...sorted.upward(key)], above);
      assert.equal(sorted.after(key), above[0]);
      assert.deepEqual([...sorted.downward(key)], plain.filter((one) => one < key).toReversed());
    }
  }
});
