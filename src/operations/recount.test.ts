import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { CountRow, JobFilter } from "../store/questions.ts";
import { findWrongCounts } from "./recount.ts";

/** Answers kept counts and real ones in turn. */
function counting(kept: readonly number[], real: readonly number[]) {
  const places = { kept: 0, real: 0 };
  return {
    countBy: async (_: unknown, filter: JobFilter = {}): Promise<CountRow[]> => {
      const which = Object.keys(filter).length === 0 ? "kept" : "real";
      const counts = which === "kept" ? kept : real;
      const count = counts[Math.min(places[which], counts.length - 1)] ?? 0;
      places[which] += 1;
      return count === 0 ? [] : [{ queue: "q", name: "n", state: "dead", count }];
    },
  };
}

describe("counts that are kept", () => {
  test("are right where they agree, or where jobs only move", async () => {
    assert.deepEqual(await findWrongCounts(counting([5], [5])), []);
    assert.deepEqual(await findWrongCounts(counting([5, 7, 9], [6, 9, 9])), []);
    assert.deepEqual(await findWrongCounts(counting([], [])), []);
  });

  test("are wrong where they are off by the same number each time, also by all", async () => {
    const about = { queue: "q", name: "n", state: "dead" };
    assert.deepEqual(await findWrongCounts(counting([5, 6, 7], [7, 8, 9])), [{ ...about, kept: 7, real: 9 }]);
    assert.deepEqual(await findWrongCounts(counting([0], [2])), [{ ...about, kept: 0, real: 2 }]);
    assert.deepEqual(await findWrongCounts(counting([3], [0])), [{ ...about, kept: 3, real: 0 }]);
  });
});
