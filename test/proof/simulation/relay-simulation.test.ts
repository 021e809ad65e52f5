import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isFull } from "../../full.ts";
import { simulateApart } from "./apart.ts";
import { relayBugs } from "./relay-bugs.ts";
import { simulateRelay } from "./relay-simulation.ts";

test("nothing is lost, early, or doubled beyond what was named, under the faults of many seeds [B2, B6, B7, D2]", (t) => {
  const { status, text } = simulateApart("relay-cli.ts", "--seeds", isFull ? "200" : "60");
  assert.equal(status, 0, text);
  t.diagnostic(text.trim());
});

test("the same seed gives the same story", async () => {
  for (let seed = 1; seed <= (isFull ? 10 : 4); seed += 1) {
    const once = (await simulateRelay(seed)).trace.join("\n");
    assert.equal((await simulateRelay(seed)).trace.join("\n"), once, `seed ${seed}`);
  }
});

const mostSeeds = 400;

describe("each bug that is put into the relay is found", () => {
  for (const bug of relayBugs) {
    test(bug.name, async (t) => {
      for (let seed = 1; seed <= mostSeeds; seed += 1) {
        const { violations } = await simulateRelay(seed, { bug });
        const found = violations.find(({ invariant }) => bug.breaks.includes(invariant));
        if (found === undefined) continue;
        t.diagnostic(`seed ${seed}: ${found.invariant}: ${found.detail}`);
        return;
      }
      assert.fail(`${mostSeeds} seeds did not find it`);
    });
  }
});
