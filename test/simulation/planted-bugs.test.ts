import assert from "node:assert/strict";
import { test } from "node:test";
import { plantedBugs } from "./planted-bugs.ts";
import { simulate } from "./simulation.ts";

/** A bug that hides for longer than this would hide from a reviewer's patience too. */
const mostSeeds = 100;

for (const bug of plantedBugs) {
  test(`the simulation finds it when ${bug.name}`, async (t) => {
    const silent = new Set(bug.breaks);
    for (let seed = 1; seed <= mostSeeds && silent.size > 0; seed += 1) {
      for (const { invariant, detail } of (await simulate(seed, { bug })).violations) {
        if (silent.delete(invariant)) t.diagnostic(`seed ${seed} breaks "${invariant}": ${detail}`);
      }
    }
    assert.deepEqual([...silent], [], `no seed up to ${mostSeeds} breaks these`);
  });
}
