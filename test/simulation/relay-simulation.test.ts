import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, test } from "node:test";
import { isFull } from "../full.ts";
import { relayBugs } from "./relay-bugs.ts";
import { simulateRelay } from "./relay-simulation.ts";

/** In a process of its own: the test runner's hooks on every promise make a simulation three times slower. */
function simulateApart(...args: string[]): { readonly status: number | null; readonly text: string } {
  const cli = join(import.meta.dirname, "relay-cli.ts");
  const { status, stdout, stderr } = spawnSync(process.execPath, [cli, ...args], {
    encoding: "utf8",
    maxBuffer: 2 ** 28,
  });
  return { status, text: stdout + stderr };
}

test("B2, B6, B7, D2: nothing is lost, early, or doubled beyond what was named, under the faults of many seeds", (t) => {
  const { status, text } = simulateApart("--seeds", isFull ? "200" : "60");
  assert.equal(status, 0, text);
  t.diagnostic(text.trim());
});

test("the same seed gives the same story", async () => {
  for (let seed = 1; seed <= 10; seed += 1) {
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
