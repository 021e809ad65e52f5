import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type FireSpec, nextFireTimes } from "../../src/cron/spec.ts";
import { isFull } from "../full.ts";
import { type OracleRules, oracle, readClocks, type Shown } from "./oracle.ts";

const zones = [
  "America/New_York",
  "Europe/London",
  "Europe/Berlin",
  "Australia/Lord_Howe",
  "America/Sao_Paulo",
  "Antarctica/Troll",
  "Africa/Casablanca",
  "Asia/Kolkata",
  "UTC",
];

const expressions = [
  "30 2 * * *",
  "0 0 * * *",
  "15 1,2,3 * * *",
  "0 2-4 * * mon-fri",
  "* * * * *",
  "*/7 * * * *",
  "*/20 2 * * *",
  "0 */3 * * *",
  "45 * 1-15 * *",
  "15,45 30 1 * * *",
  "*/20 */30 2 * * *",
  "0 2 L * *",
  "0 2 15W * *",
  "30 1 LW * *",
  "0 3 * * 0#1",
  "30 2 * * sunL",
  "0 2 25 * sun",
];

const rules: OracleRules[] = [
  {},
  { gap: "skip" },
  { repeat: "both" },
  { repeat: "first" },
  { gap: "skip", repeat: "both" },
  { days: "and" },
];

const dayMs = 86_400_000;
const from = Date.UTC(2012, 0, 1);
const to = Date.UTC(2022, 0, 1);

/** Every change of the clocks in ten years, found by looking at each hour. */
function changes(zone: string): number[] {
  const format = new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "longOffset" });
  const offsetAt = (instant: number): string => format.format(instant).split("GMT")[1] ?? "";
  const found: number[] = [];
  for (let day = from; day < to; day += dayMs) {
    if (offsetAt(day) !== offsetAt(day + dayMs)) found.push(day);
  }
  return found;
}

function compare(zone: string, clocks: readonly Shown[], chosen: readonly OracleRules[]): number {
  const first = clocks[0]?.instant ?? 0;
  const last = clocks.at(-1)?.instant ?? 0;
  // The first day only shows the oracle which wall times have been: a second pass is known by its first.
  const after = first + dayMs;
  let compared = 0;
  for (const expression of expressions) {
    for (const rule of chosen) {
      const expected = oracle(expression, rule, clocks).filter((instant) => instant > after);
      const spec: FireSpec = { cron: expression, timezone: zone, endAt: new Date(last + 59_999), ...rule };
      const actual = nextFireTimes(spec, { after: new Date(after), count: expected.length + 1 }).map(Number);
      const index = expected.findIndex((instant, place) => instant !== actual[place]);
      assert.deepEqual(
        [new Date(actual[index] ?? 0), actual.length],
        [new Date(expected[index] ?? 0), expected.length],
        `${expression} in ${zone} with ${JSON.stringify(rule)}, firing ${index} after ${new Date(after).toISOString()}`,
      );
      compared += expected.length;
    }
  }
  return compared;
}

describe("cron agrees with a brute-force oracle", () => {
  const everything = process.env["ESCAPEMENT_ORACLE"] === "full";
  // Odd, so that it is spring and autumn by turns: there are two changes in a year.
  const nth = isFull ? 3 : 7;
  for (const zone of zones) {
    test(`${zone}: ${everything ? "every minute of ten years" : `around one in ${nth} changes of the clocks in ten years`}`, (context) => {
      let compared = 0;
      if (everything) {
        compared += compare(zone, readClocks(zone, from, to), rules);
      } else {
        for (const change of changes(zone).filter((_, index) => index % nth === 0))
          compared += compare(zone, readClocks(zone, change - dayMs / 2, change + 1.5 * dayMs), rules);
        compared += compare(
          zone,
          readClocks(zone, Date.UTC(2019, 1, 20), Date.UTC(2019, 2, 5)),
          rules.slice(0, 1),
        );
      }
      assert.ok(compared > 1_000);
      context.diagnostic(`${compared} firings agree`);
    });
  }
});

test("ten thousand next times of common expressions take well under a second", (context) => {
  const spec = { cron: "0 3 * * mon-fri", timezone: "Europe/Berlin" };
  const began = performance.now();
  for (let n = 0; n < 10_000; n++) nextFireTimes(spec, { after: new Date(from + n * 3_600_000) });
  context.diagnostic(`${Math.round(performance.now() - began)} ms`);
});
