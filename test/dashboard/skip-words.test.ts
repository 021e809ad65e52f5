import assert from "node:assert/strict";
import { test } from "node:test";
import { skipWords } from "../../dashboard/src/screens/skip-words.ts";

test("why an occurrence was skipped is said once, and in words", () => {
  for (const [reason, words] of [
    ["misfire: only the latest missed one fires", "missed, and only the latest missed one fires"],
    ["misfire: missed, and missed ones are skipped", "missed, and missed ones are skipped"],
    ["misfire: older than the look-back", "missed, and older than the look-back"],
    ["overlap: the previous job is still active", "the previous job was still active"],
    ["overlap: one is queued already", "one was queued already"],
    ["paused", "paused"],
    ["of another version", null],
  ] as const)
    assert.equal(skipWords(reason), words);
});
