import assert from "node:assert/strict";
import { test } from "node:test";
import { parseInstant } from "./instant.ts";

test("a day that no calendar has is no instant", () => {
  const wrong = [
    "2027-02-31T10:00:00Z",
    "2027-02-29",
    "2026-04-31",
    "2026-00-10",
    "2026-13-01",
    "2026-01-00",
    "2026-01-01T25:00:00Z",
    "tomorrow",
    "",
  ];
  for (const text of wrong) assert.equal(parseInstant(text), null, text);
  assert.equal(parseInstant("2028-02-29T10:00:00Z")?.toISOString(), "2028-02-29T10:00:00.000Z");
  assert.equal(parseInstant("2028-02-29T10:00:00+02:00")?.toISOString(), "2028-02-29T08:00:00.000Z");
  assert.equal(parseInstant("2026-12-31")?.toISOString(), "2026-12-31T00:00:00.000Z");
  assert.equal(parseInstant("2026-12")?.toISOString(), "2026-12-01T00:00:00.000Z");
});
