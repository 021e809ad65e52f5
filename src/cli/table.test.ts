import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Painted, render, table } from "./output.ts";
import { RateMeter } from "./rates.ts";
import { sparkline } from "./sparkline.ts";
import { cutTo, widthOf } from "./text-width.ts";
import { away, short } from "./times.ts";

const text = (columns: number, rows: (string | number | Painted)[][], whole: string[] = []): string[] =>
  table(["id", "n", "what"], rows, { columns, whole }).map((line) => render(line));

describe("tables", () => {
  test("columns are as wide as they must be, and numbers stand at the right", () => {
    assert.deepEqual(
      text(80, [
        ["a", 1, "x"],
        ["long", 20, "y"],
      ]),
      ["id     n  what", "a      1  x", "long  20  y"],
    );
  });

  test("on a narrow terminal the widest column gives way, and what a person copies stays whole", () => {
    const id = "0123456789abcdef";
    const rows = text(40, [[id, 1, "a long story that does not fit at all"]], ["id"]);
    assert.deepEqual(rows[1], `${id}  1  a long story that …`);
    assert(
      text(20, [[id, 1, "a long story"]], ["id"]).every((row) => widthOf(row) <= 30),
      "a narrow one is cut all the same",
    );
  });

  test("wide characters take two columns, and marks none", () => {
    assert.deepEqual([widthOf("日本"), widthOf("e\u0301"), widthOf("🚀"), widthOf("a")], [4, 1, 2, 1]);
    assert.deepEqual(
      [cutTo("日本語", 4), cutTo("abc", 3), cutTo("abcd", 3), cutTo("x", 0)],
      ["日…", "abc", "ab…", ""],
    );
    const rows = text(80, [
      ["日本", 1, "x"],
      ["a", 1, "y"],
    ]);
    assert.equal(widthOf(rows[1] ?? ""), widthOf(rows[2] ?? ""));
  });

  test("what stands in a cell cannot leave it, painted or not", () => {
    const rows = text(80, [["a\nb", 1, new Painted("c\u001b[2J", "red")]]);
    assert.equal(rows.at(-1), "a\\nb  1  c\\u001b[2J");
  });
});

describe("figures of a screen", () => {
  test("a sparkline is as high as its highest figure, and something is more than nothing", () => {
    assert.equal(sparkline([0, 1, 100], 5), "  ▁▂█");
    assert.equal(sparkline([], 3), "   ");
    assert.equal(sparkline([1, 2, 3, 4], 2), "▆█");
  });

  test("rates are what ended between two looks; a count that falls is no rate", () => {
    const meter = new RateMeter();
    const look = (second: number, succeeded: number, dead: number) => ({
      now: new Date(second * 1_000),
      counts: [
        { state: "succeeded", count: succeeded },
        { state: "dead", count: dead },
      ] as const,
      queues: [],
    });
    meter.add(look(0, 100, 5));
    meter.add(look(2, 300, 6));
    meter.add(look(3, 50, 6));
    assert.deepEqual(meter.rates.succeeded, [100, 0]);
    assert.deepEqual(meter.rates.failed, [0.5, 0]);
  });

  test("times are short", () => {
    const now = new Date(100_000_000);
    assert.deepEqual([0, 59_999, 90_000, 7_200_000, 200_000_000].map(short), ["0s", "59s", "1m", "2h", "2d"]);
    assert.deepEqual(
      [away(new Date(99_000_000), now), away(new Date(100_090_000), now)],
      ["16m ago", "in 1m"],
    );
  });
});
