import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { screenLines } from "./commands/status-screen.ts";
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

  test("without a terminal nothing is cut, and one long cell does not pad every row", () => {
    const id = "x".repeat(300);
    const rows = text(Number.POSITIVE_INFINITY, [
      [id, 1, "y"],
      ["a", 2, "z"],
    ]);
    assert.equal(rows[1], `${id}  1  y`);
    assert.equal(rows[2], `${"a".padEnd(60)}  2  z`);
  });

  test("on a narrow terminal the widest column gives way, and what a person copies stays whole", () => {
    const id = "0123456789abcdef";
    const rows = text(40, [[id, 1, "a long story that does not fit at all"]], ["id"]);
    assert.deepEqual(rows[1], `${id}  1  a long story that …`);
    assert.equal(text(20, [[id, 1, "a long story"]], ["id"])[1], `${id}  1`, "the story is left out");
    assert.equal(text(16, [[id, 1, "a long story"]], ["id"])[1], id, "it fits the line by itself");
    assert.equal(
      text(10, [[id, 1, "a long story"]], ["id"])[1],
      "…789abcdef",
      "it does not, and ends differ",
    );
  });

  test("the least important columns are left out, and whatever fits beside the others stays", () => {
    const shown = (columns: number): string => {
      const cells = ["a name of this thing", 12, "0123456789abcdef", "a reason that is long"];
      const options = { columns, whole: ["id"], importance: ["id", "why", "count", "name"] };
      return table(["name", "count", "id", "why"], [cells], options)
        .map((line) => render(line))
        .join("|");
    };
    assert.match(
      shown(80),
      /^name +count +id +why\|a name of this thing +12 +0123456789abcdef +a reason that is long$/,
    );
    assert.equal(
      shown(43),
      "name      count  id                why|a name …     12  0123456789abcdef  a reaso…",
    );
    assert.equal(shown(42), "count  id                why|   12  0123456789abcdef  a reason that is…");
    assert.equal(shown(30), "id                why|0123456789abcdef  a reason th…");
    assert.equal(shown(25), "count  id|   12  0123456789abcdef", "a shorter one fits");
    assert.equal(shown(20), "id|0123456789abcdef");
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

  test("a narrow screen keeps the newest side of each line of bars", () => {
    const figures = Array.from({ length: 60 }, (_, n) => (n === 59 ? 9 : 1));
    const rates = { succeeded: figures, failed: figures, due: new Map([["a-queue-with-a-name", figures]]) };
    const counts = {
      due: 123_456,
      later: 123_456,
      active: 100,
      blocked: 7,
      oldestDueAt: null,
      isExact: true,
    };
    const queue = { ...counts, queue: "a-queue-with-a-name", paused: true, concurrency: null, rate: null };
    const overview = {
      now: new Date(0),
      counts: [],
      queues: [{ ...queue, oldestDueMs: 5_000 }],
      nodes: [],
      failures: { groups: [], count: 0, from: null, to: null, looked: 0, isPartial: false },
    };
    for (const columns of [60, 80, 100, 120]) {
      const screen = screenLines(overview, rates, { columns, rows: 24, title: "escapement" });
      const lines = screen.map((line) => render(line));
      const newest = lines.filter((line) => line.includes("▁") || line.includes("▂"));
      for (const line of newest) assert.match(line, /█ /, `${columns}: ${line}`);
      assert.equal(newest.length, 2, lines.join("\n"));
      assert(lines[1] !== undefined && widthOf(lines[1]) <= columns, lines[1]);
    }
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
      ["16m ago", "in 2m"],
    );
  });
});
