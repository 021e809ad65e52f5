import assert from "node:assert/strict";
import { test } from "node:test";
import { formatDuration, parseDuration } from "./duration.ts";

test("numbers are milliseconds, strings carry a unit", () => {
  const cases = { "250ms": 250, "30s": 30_000, "1.5h": 5_400_000, "7d": 604_800_000, "2w": 1_209_600_000 };
  for (const [text, ms] of Object.entries(cases)) assert.equal(parseDuration(text, "delay"), ms);
  assert.equal(parseDuration(1_500, "delay"), 1_500);
});

test("nonsense is refused with the option's name and the value", () => {
  for (const bad of [
    -1,
    "-5s",
    "5",
    "5 years",
    "",
    Number.NaN,
    Number.POSITIVE_INFINITY,
    null,
    undefined,
    {},
    1e15,
  ]) {
    assert.throws(() => parseDuration(bad, "delay"), {
      code: "invalid-duration",
      message: /^expected delay to be a duration/,
    });
  }
});

test("a person reads at most two units", () => {
  assert.deepEqual([0, 999, 1_000, 1_500, 61_000, 3_600_000, 90_061_000].map(formatDuration), [
    "0ms",
    "999ms",
    "1s",
    "1.5s",
    "1m 1s",
    "1h",
    "1d 1h",
  ]);
});

test("what is rounded up to a unit is written in that unit", () => {
  const cases = {
    "1s": 999.6,
    "1.1s": 1_050,
    "59.9s": 59_949,
    "1m": 59_970,
    "2m": 119_960,
    "1h": 3_599_970,
    "2h": 2 * 3_600_000 - 20_000,
    "1d": 86_400_000 - 20_000,
    "2d": 2 * 86_400_000 - 60_000,
    "30d": 30 * 86_400_000 + 1,
  };
  for (const [text, ms] of Object.entries(cases)) assert.equal(formatDuration(ms), text);
});
