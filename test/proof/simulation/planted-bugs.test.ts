import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { simulateApart } from "./apart.ts";
import type { Hunt } from "./find-bugs.ts";
import { plantedBugs } from "./planted-bugs.ts";

/** A bug that hides for longer than this would hide from a reviewer's patience too. */
const mostSeeds = 600;

describe("the simulation finds it when", () => {
  let hunts: readonly Hunt[];

  before(() => {
    const { status, text } = simulateApart("find-bugs.ts", String(mostSeeds));
    assert.equal(status, 0, text);
    hunts = text
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line));
  });

  for (const { name } of plantedBugs) {
    test(name, (t) => {
      const hunt = hunts.find((one) => one.name === name);
      assert(hunt);
      for (const line of hunt.found) t.diagnostic(line);
      assert.deepEqual(hunt.silent, [], `no seed up to ${mostSeeds} breaks these`);
    });
  }
});
