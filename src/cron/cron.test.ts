import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { explainCron } from "./explain.ts";
import { parseCron } from "./fields.ts";
import { type FireSpec, nextFireTimes } from "./spec.ts";

const at = (text: string): Date => new Date(text);
const next = (spec: FireSpec | string, after: string, count = 1): string[] =>
  nextFireTimes(spec, { after: at(after), count }).map((date) => date.toISOString().replace(":00.000Z", "Z"));

describe("cron expressions", () => {
  test("fields, names in any case, 7 as Sunday, ranges, steps, lists and nicknames mean what they should", () => {
    const from = "2026-01-01T00:00:00Z";
    const cases: [string, string[]][] = [
      ["0 3 * * *", ["2026-01-01T03:00Z", "2026-01-02T03:00Z"]],
      ["*/20 5 * * *", ["2026-01-01T05:00Z", "2026-01-01T05:20Z", "2026-01-01T05:40Z", "2026-01-02T05:00Z"]],
      ["5/25 0 * * *", ["2026-01-01T00:05Z", "2026-01-01T00:30Z", "2026-01-01T00:55Z"]],
      ["0 0 * * 7", ["2026-01-04T00:00Z", "2026-01-11T00:00Z"]],
      ["0 0 * JAN,feb Mon-TUE", ["2026-01-05T00:00Z", "2026-01-06T00:00Z"]],
      ["0 12 L * *", ["2026-01-31T12:00Z", "2026-02-28T12:00Z"]],
      ["0 12 L-2 * *", ["2026-01-29T12:00Z", "2026-02-26T12:00Z"]],
      ["0 12 15W * *", ["2026-01-15T12:00Z", "2026-02-16T12:00Z", "2026-03-16T12:00Z"]],
      ["0 12 1W * *", ["2026-01-01T12:00Z", "2026-02-02T12:00Z"]],
      ["0 12 LW * *", ["2026-01-30T12:00Z", "2026-02-27T12:00Z"]],
      ["0 12 ? * 5#2", ["2026-01-09T12:00Z", "2026-02-13T12:00Z"]],
      ["0 12 * * friL", ["2026-01-30T12:00Z", "2026-02-27T12:00Z"]],
      ["0 0 13 * 5", ["2026-01-02T00:00Z", "2026-01-09T00:00Z", "2026-01-13T00:00Z"]],
      ["0 0 29 2 *", ["2028-02-29T00:00Z", "2032-02-29T00:00Z"]],
      ["@monthly", ["2026-02-01T00:00Z"]],
      ["@weekly", ["2026-01-04T00:00Z"]],
      ["@hourly", ["2026-01-01T01:00Z"]],
    ];
    for (const [expression, expected] of cases)
      assert.deepEqual(next(expression, from, expected.length), expected, expression);
    assert.deepEqual(next({ cron: "0 0 13 * 5", days: "and" }, from, 2), [
      "2026-02-13T00:00Z",
      "2026-03-13T00:00Z",
    ]);
    assert.deepEqual(next("15,45 30 4 * * *", from, 3), [
      "2026-01-01T04:30:15.000Z",
      "2026-01-01T04:30:45.000Z",
      "2026-01-02T04:30:15.000Z",
    ]);
  });

  test("after is exclusive, and milliseconds do not matter", () => {
    assert.deepEqual(next("0 3 * * *", "2026-01-01T03:00:00Z"), ["2026-01-02T03:00Z"]);
    assert.deepEqual(next("0 3 * * *", "2026-01-01T02:59:59.999Z"), ["2026-01-01T03:00Z"]);
    assert.deepEqual(next("* * * * * *", "2026-01-01T02:59:59.999Z"), ["2026-01-01T03:00Z"]);
  });

  test("an impossible date ends quickly, with nothing", () => {
    for (const never of ["0 0 30 2 *", "0 0 31 4,6,9,11 *"])
      assert.deepEqual(next(never, "2026-01-01T00:00:00Z"), []);
    assert.deepEqual(next({ cron: "0 0 31 2 1", days: "and" }, "2026-01-01T00:00:00Z"), []);
    assert.deepEqual(
      next({ cron: "0 0 29 2 1", days: "and" }, "2080-03-01T00:00:00Z"),
      ["2112-02-29T00:00Z"],
      "a leap Monday over 2100",
    );
  });

  test("every and at; startAt and endAt bound all of them", () => {
    const from = "2026-01-01T00:10:00Z";
    assert.deepEqual(next({ every: "15m" }, from, 2), ["2026-01-01T00:15Z", "2026-01-01T00:30Z"]);
    assert.deepEqual(next({ every: "15m", startAt: at("2026-01-01T01:05:00Z") }, from, 2), [
      "2026-01-01T01:05Z",
      "2026-01-01T01:20Z",
    ]);
    assert.deepEqual(next({ at: at("2026-05-01T00:00:00Z") }, from, 2), ["2026-05-01T00:00Z"]);
    assert.deepEqual(next({ at: at("2025-05-01T00:00:00Z") }, from), []);
    const bounded = {
      cron: "0 * * * *",
      startAt: at("2026-01-01T05:00:00Z"),
      endAt: at("2026-01-01T06:00:00Z"),
    };
    assert.deepEqual(next(bounded, from, 5), ["2026-01-01T05:00Z", "2026-01-01T06:00Z"]);
  });

  test("the days when the clocks change: fixed times", () => {
    const berlin = (rules: Partial<FireSpec>): FireSpec => ({
      cron: "30 2 * * *",
      timezone: "Europe/Berlin",
      ...rules,
    });
    assert.deepEqual(
      next(berlin({}), "2026-03-28T12:00:00Z", 2),
      ["2026-03-29T01:00Z", "2026-03-30T00:30Z"],
      "right after the gap",
    );
    assert.deepEqual(next(berlin({ gap: "skip" }), "2026-03-28T12:00:00Z"), ["2026-03-30T00:30Z"]);
    assert.deepEqual(
      next(berlin({}), "2026-10-24T12:00:00Z", 2),
      ["2026-10-25T00:30Z", "2026-10-26T01:30Z"],
      "the first pass",
    );
    assert.deepEqual(next(berlin({ repeat: "both" }), "2026-10-24T12:00:00Z", 2), [
      "2026-10-25T00:30Z",
      "2026-10-25T01:30Z",
    ]);
    const list = { cron: "0,30 2 * * *", timezone: "Europe/Berlin" };
    assert.deepEqual(
      next(list, "2026-03-28T12:00:00Z", 2),
      ["2026-03-29T01:00Z", "2026-03-30T00:00Z"],
      "two skipped times are one firing",
    );
  });

  test("the days when the clocks change: intervals follow real time", () => {
    const hourly = { cron: "0 * * * *", timezone: "America/New_York" };
    assert.deepEqual(next(hourly, "2026-11-01T04:30:00Z", 4), [
      "2026-11-01T05:00Z",
      "2026-11-01T06:00Z",
      "2026-11-01T07:00Z",
      "2026-11-01T08:00Z",
    ]);
    assert.deepEqual(next({ ...hourly, repeat: "first" }, "2026-11-01T04:30:00Z", 3), [
      "2026-11-01T05:00Z",
      "2026-11-01T07:00Z",
      "2026-11-01T08:00Z",
    ]);
    assert.deepEqual(next(hourly, "2026-03-08T06:30:00Z", 2), ["2026-03-08T07:00Z", "2026-03-08T08:00Z"]);
    const halfHour = { cron: "15 * * * *", timezone: "Australia/Lord_Howe" };
    assert.deepEqual(
      next(halfHour, "2026-10-03T14:00:00Z", 3),
      ["2026-10-03T14:45Z", "2026-10-03T16:15Z", "2026-10-03T17:15Z"],
      "the clocks go from 02:00 to 02:30: there is no 02:15",
    );
  });

  test("a midnight that does not exist: Sao Paulo before 2019", () => {
    const daily = { cron: "0 0 * * *", timezone: "America/Sao_Paulo" };
    assert.deepEqual(next(daily, "2018-11-03T12:00:00Z", 2), ["2018-11-04T03:00Z", "2018-11-05T02:00Z"]);
    assert.deepEqual(next({ ...daily, gap: "skip" }, "2018-11-03T12:00:00Z"), ["2018-11-05T02:00Z"]);
  });

  test("bad expressions are refused: the message names the field and says what is allowed", () => {
    const cases: [string, RegExp][] = [
      ["0 3 * *", /5 fields, or 6 with seconds, got 4/],
      ["60 3 * * *", /^minute of "60 3 \* \* \*": expected 0 to 59, got "60"/],
      ["0 24 * * *", /^hour of .*expected 0 to 23/],
      ["0 0 0 * *", /^day of month of .*expected 1 to 31/],
      ["0 0 * foo *", /^month of .*expected 1 to 12, or jan to dec, got "foo"/],
      ["0 0 * * 8", /^day of week of .*expected 0 to 7, or sun to sat/],
      ["0 0 * * 5#6", /^day of week of .*1 to 5/],
      ["*/0 * * * *", /^minute of .*a step of 1 or more/],
      ["10-5 * * * *", /^minute of .*runs backwards/],
      ["1/2/3 * * * *", /more than one step/],
      ["0 0 L-31 * *", /before the start/],
      ["@often", /unknown nickname "@often"; known nicknames: @yearly/],
      ["", /got 1 in ""/],
    ];
    for (const [expression, message] of cases)
      assert.throws(() => parseCron(expression), { code: "invalid-cron", message });
    assert.throws(() => nextFireTimes({ cron: "0 0 * * *", timezone: "Mars/Base" }), {
      code: "invalid-zone",
      message: /"Mars\/Base"/,
    });
    assert.throws(() => nextFireTimes({}), { code: "invalid-schedule", message: /got none/ });
    assert.throws(() => nextFireTimes({ cron: "* * * * *", every: 5 }), {
      code: "invalid-schedule",
      message: /got cron and every/,
    });
    assert.throws(() => nextFireTimes({ every: 5, startAt: at("2026-01-02"), endAt: at("2026-01-01") }), {
      code: "invalid-schedule",
      message: /endAt/,
    });
    assert.throws(() => nextFireTimes({ corn: "* * * * *" } as FireSpec), { code: "invalid-option" });
  });

  test("expressions are explained in plain English", () => {
    const cases: Record<string, string> = {
      "30 2 * * mon-fri": "at 02:30, on Monday to Friday",
      "0 9,17 * * *": "at 09:00 and 17:00",
      "* * * * *": "every minute",
      "*/15 * * * *": "every 15 minutes",
      "*/15 9-17 * * *": "every 15 minutes, in the hours of 09:00 to 17:00",
      "5 * * * *": "at minute 5 of the hour",
      "0 0 1,15 * *": "at 00:00, on days 1 and 15 of the month",
      "0 0 L 6 *": "at 00:00, on the last day of the month, in June",
      "0 12 ? * 5#2": "at 12:00, on the second Friday of the month",
      "0 12 13 * 5": "at 12:00, on day 13 of the month or Friday",
      "*/10 * * * * *": "every 10 seconds",
      "@daily": "at 00:00",
      "0 8 LW 1-3 *": "at 08:00, on the last working day of the month, in January to March",
    };
    for (const [expression, expected] of Object.entries(cases))
      assert.equal(explainCron(expression), expected);
    assert.equal(
      explainCron("0 12 13 * 5", { days: "and" }),
      "at 12:00, on day 13 of the month, if that is Friday",
    );
  });

  test("a week may end with Sunday", () => {
    assert.deepEqual([...(parseCron("0 0 * * mon-sun").weekDays?.days ?? [])].sort(), [0, 1, 2, 3, 4, 5, 6]);
    assert.deepEqual([...(parseCron("0 0 * * fri-sun").weekDays?.days ?? [])].sort(), [0, 5, 6]);
    assert.deepEqual([...(parseCron("0 0 * * 5-7").weekDays?.days ?? [])].sort(), [0, 5, 6]);
  });
});
