import assert from "node:assert/strict";
import { test } from "node:test";
import { ClaimedSeqs } from "./claimed-seqs.ts";

test("the numbers of claimed jobs are known once, all of those that are asked for or none", () => {
  const claimed = new ClaimedSeqs();
  claimed.note(["a", "b"], [1, 2]);
  assert.deepEqual(claimed.take(["b", "a"]), [2, 1]);
  assert.equal(claimed.take(["a"]), null);
  claimed.note(["a"], [3]);
  assert.equal(claimed.take(["a", "unknown"]), null);
});

test("a job that is claimed again has the number of its last claim", () => {
  const claimed = new ClaimedSeqs();
  claimed.note(["a"], [1]);
  claimed.note(["a"], [7]);
  assert.deepEqual(claimed.take(["a"]), [7]);
});

test("of more jobs than are kept, those that were claimed first are forgotten", () => {
  const claimed = new ClaimedSeqs();
  const ids = Array.from({ length: 20_001 }, (_, n) => `j-${n}`);
  claimed.note(
    ids,
    ids.map((_, n) => n),
  );
  assert.equal(claimed.take(["j-0"]), null);
  assert.deepEqual(claimed.take(["j-1", "j-20000"]), [1, 20_000]);
});
