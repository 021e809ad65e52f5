import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { brokenMessages } from "./broken-messages.ts";
import { fuzz, targets } from "./fuzz.ts";

describe("after any number of broken messages a good one is handled, and all of them come to an end", {
  concurrency: false,
}, () => {
  for (const [name, target] of Object.entries(targets)) {
    test(name, async (context) => {
      const skip = await target.skip();
      if (skip !== false) return context.skip(skip);
      const seed = Number(process.env["ESCAPEMENT_SEED"] ?? Date.now() % 100_000);
      const { failures } = await fuzz(name, 60, seed);
      assert.deepEqual(failures, [], `npm run fuzz -- --messages 60 --seed ${seed} --transport ${name}`);
    });
  }
});

test("the same seed breaks messages in the same way", () => {
  assert.deepEqual([...brokenMessages(7, 50)], [...brokenMessages(7, 50)]);
  assert.notDeepEqual([...brokenMessages(7, 50)], [...brokenMessages(8, 50)]);
});
