import assert from "node:assert/strict";
import { test } from "node:test";
import { holdsRawNumbers, parseExact, rawNumber } from "./exact-json.ts";

test("numbers come out of JSON with the digits that they went in with", () => {
  const texts = [
    "9007199254740993",
    "-9007199254740993",
    "123456789012345678901234567890",
    "0.1234567890123456789",
    "1e400",
    '{"id":9007199254740993,"list":[12345678901234567890,1],"text":"9007199254740993"}',
  ];
  for (const text of texts) {
    const value = parseExact(text);
    assert.equal(JSON.stringify(value), text);
    assert(holdsRawNumbers(value));
  }
  assert.equal(rawNumber((parseExact(texts[5] ?? "") as { id: unknown }).id), "9007199254740993");
});

test("numbers that lose nothing are numbers, however they are written", () => {
  const texts = [
    "9007199254740992",
    "1e5",
    "1.5E+3",
    "100000000000000000000",
    "0.10000000000000000",
    "[1.0, 2, 5e-324, -0.0, 1e21]",
    '"1e5"',
    "null",
    '{"a":{"b":123456789012345680}}',
  ];
  for (const text of texts) {
    const value = parseExact(text);
    assert.deepEqual(value, JSON.parse(text), text);
    assert(!holdsRawNumbers(value), text);
  }
});
