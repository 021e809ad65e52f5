import assert from "node:assert/strict";
import { test } from "node:test";
import { sizeOf } from "./sizes.ts";

test("a size is short, in the unit that fits", () => {
  const cases: [number, string][] = [
    [0, "0 bytes"],
    [1_023, "1023 bytes"],
    [1_024, "1 KB"],
    [1_536, "1.5 KB"],
    [10_200, "10 KB"],
    [1_048_000, "1023 KB"],
    [1_048_575, "1 MB"],
    [19_236_904, "18 MB"],
    [16_777_216, "16 MB"],
    [5_368_709_120, "5 GB"],
    [2 ** 60, "1048576 TB"],
  ];
  for (const [bytes, expected] of cases) assert.equal(sizeOf(bytes), expected);
});
