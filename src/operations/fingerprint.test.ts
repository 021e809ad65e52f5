import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readErrorHead, recordError } from "../errors.ts";
import { errorHeadLength } from "../store/questions.ts";
import { fingerprintOf, shapeOf } from "./fingerprint.ts";

describe("the fingerprint of an error", () => {
  test("what changes from job to job does not change the shape", () => {
    const cases: [string, string][] = [
      ["timeout after 30000 ms", "timeout after <n> ms"],
      ["timeout after 1.5 s", "timeout after <n> s"],
      ["connect ECONNREFUSED 10.0.0.7:5432", "connect ECONNREFUSED <n>"],
      ['customer "Ann O\'Hara" is unknown', "customer <text> is unknown"],
      ["column 'a' is unknown", "column <text> is unknown"],
      ["job 0190f8a2-7b1c-7def-8a00-1234567890ab is gone", "job <id> is gone"],
      ["commit 9fceb02d0ae598e95dc970b74767f19372d6 is missing", "commit <id> is missing"],
      ["key user_2f8Dk3LmQpR7sT9vXyZa1b has no value", "key <id> has no value"],
      ["not before 2026-11-15T03:00:00.000Z", "not before <time>"],
      ["at 0xDEADBEEF", "at <id>"],
      ["can't open, won't try", "can't open, won't try"],
      ["first line\nsecond 7", "first line"],
      ["  much\t\tspace ", "much space"],
      ["deadbeef feed", "deadbeef feed"],
      ["", ""],
    ];
    for (const [message, shape] of cases) assert.equal(shapeOf("Error", message), `Error: ${shape}`);
  });

  test("errors of one cause share it, others do not", () => {
    const of = (error: unknown) =>
      fingerprintOf({ errorHead: JSON.stringify(recordError(error)).slice(0, errorHeadLength), reason: "r" });
    assert.deepEqual(of(new Error("no row 7")), of(new Error("no row 12")));
    assert.notEqual(of(new Error("no row 7")).id, of(new Error("no column 7")).id);
    assert.notEqual(of(new TypeError("no row 7")).id, of(new Error("no row 7")).id);
    assert.match(of(new Error("x")).id, /^[0-9a-f]{10}$/);
  });

  test("a job without an error goes by its reason", () => {
    const lost = { errorHead: null, reason: "its lease ran out" };
    assert.equal(fingerprintOf(lost).shape, "its lease ran out");
    assert.equal(fingerprintOf({ errorHead: null, reason: null }).shape, "no reason is known");
  });

  test("a hostile message takes no time and breaks nothing", () => {
    for (const part of ['"', "'", "a1", "\\", "0", "<n>", "{", "“"]) {
      const record = JSON.stringify(recordError(new Error(part.repeat(2_000))));
      for (let cut = 0; cut <= errorHeadLength; cut += 7)
        fingerprintOf({ errorHead: record.slice(0, cut), reason: null });
    }
  });
});

describe("the head of a recorded error", () => {
  test("it has the name and as much of the message as there is", () => {
    const record = JSON.stringify(recordError(new RangeError('a "b" \\ c\n🕰️ \u0007')));
    assert.deepEqual(readErrorHead(record), { name: "RangeError", message: 'a "b" \\ c\n🕰️ \u0007' });
    const start = record.indexOf('a \\"b');
    for (let cut = start; cut < record.length; cut += 1) {
      const head = readErrorHead(record.slice(0, cut));
      assert.equal(head?.name, "RangeError");
      assert('a "b" \\ c\n🕰️ \u0007'.startsWith(head?.message.toWellFormed().replace("\uFFFD", "") ?? "?"));
    }
    assert.equal(readErrorHead(null), null);
    assert.equal(readErrorHead("{nonsense")?.message, "the error that was recorded cannot be read");
    assert.deepEqual(readErrorHead('{"message":"m","name":"N"}'), { message: "m", name: "N" });
  });
});
