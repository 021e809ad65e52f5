import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { away, instant, instantOrAgo } from "./times.ts";

const now = new Date("2026-11-15T03:00:00Z");
const inMs = (ms: number): string => away(new Date(now.getTime() + ms), now);

describe("times", () => {
  test("what is due in an hour is so a moment later too", () => {
    assert.deepEqual([3_600_000, 3_599_100, 7_199_000, 7_200_000, 60_000, 59_001, 1].map(inMs), [
      "in 1h",
      "in 1h",
      "in 2h",
      "in 2h",
      "in 1m",
      "in 1m",
      "in 1s",
    ]);
    assert.deepEqual([0, -59_999, -3_600_000].map(inMs), ["0s ago", "59s ago", "1h ago"]);
  });

  test("a day that no calendar has is refused", () => {
    for (const text of ["2027-02-31T10:00:00Z", "2027-02-29"]) {
      assert.throws(() => instant(text), /expected a time such as 2026-11-15T03:00:00Z$/, text);
      assert.throws(() => instantOrAgo(text), /expected a time such as .*, or how long ago, such as 90m/);
    }
    assert.equal(instant("2026-12").toISOString(), "2026-12-01T00:00:00.000Z");
  });
});
