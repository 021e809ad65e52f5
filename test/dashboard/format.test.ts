import assert from "node:assert/strict";
import { test } from "node:test";
import { ago } from "../../dashboard/src/format.ts";

const now = Date.parse("2026-11-18T12:00:00Z");
const at = (ms: number): string => new Date(now + ms).toISOString();

test("what is to come is never said to come nearly twice as soon", () => {
  const cases: [number, string][] = [
    [400, "now"],
    [59_000, "in 59 s"],
    [60_000, "in 1 min"],
    [119_000, "in 1 min 59 s"],
    [7_140_000, "in 1 h 59 min"],
    [-119_000, "1 min ago"],
  ];
  for (const [ms, said] of cases) assert.equal(ago(at(ms), now), said);
});
