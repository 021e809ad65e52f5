import assert from "node:assert/strict";
import { test } from "node:test";
import { isFull } from "../../full.ts";
import { simulateApart } from "./apart.ts";
import { simulate } from "./simulation.ts";

const seeds = isFull ? 100 : 40;

test(`every guarantee holds under the faults of ${seeds} seeds [A1, K5]`, (t) => {
  const { status, text } = simulateApart("cli.ts", "--seeds", String(seeds));
  assert.equal(status, 0, text);
  t.diagnostic(text.trim());
});

test("the same seed gives the same trace, byte for byte", async () => {
  for (let seed = 1; seed <= (isFull ? 8 : 3); seed += 1) {
    const once = (await simulate(seed)).trace.join("\n");
    const again = (await simulate(seed)).trace.join("\n");
    assert.ok(once.length > 1_000, "there is a story");
    assert.equal(again, once, `seed ${seed}`);
  }
});

test("another process tells the same story of a seed", () => {
  // The last line tells how long it took.
  const tell = (): string =>
    simulateApart("cli.ts", "--seed", "8", "--trace").text.split("\n").slice(0, -2).join("\n");
  assert.equal(tell(), tell());
});

test("between them the seeds see every climate, every end and every kind of fault", async () => {
  const climates = ["calm", "crashes", "pauses", "network", "outages", "blackouts", "stops", "all", "storm"];
  const ends = ["succeeded", "dead", "lost", "cancelled"];
  const missing = new Set([...climates, ...ends, ...signs]);
  for (let seed = 1; seed <= 60 && missing.size > 0; seed += 1) {
    const result = await simulate(seed);
    missing.delete(result.climate);
    for (const state of Object.keys(result.states)) missing.delete(state);
    const story = result.trace.join("\n");
    for (const sign of signs) if (story.includes(sign)) missing.delete(sign);
  }
  assert.deepEqual([...missing], []);
});

/** What a trace says of the rarer things. */
const signs = [
  ": stale",
  ": repeated",
  "(repeated)",
  "absorbed",
  "existing",
  "lease-lost",
  "shutdown",
  "timeout",
  "poison",
  "expired",
  "has stopped",
  "killed by",
  "crash before",
  "crash after the store",
  "a part of finish",
  "a part of fire",
  "planned 2026",
  "skipped 2026",
  "fire s0: stale",
  "paused, ",
  "replace {s",
];
