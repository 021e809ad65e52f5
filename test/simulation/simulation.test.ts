import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { simulate } from "./simulation.ts";

/** In a process of its own: the test runner's hooks on every promise make a simulation three times slower. */
function simulateApart(...args: string[]): { readonly status: number | null; readonly text: string } {
  const cli = join(import.meta.dirname, "cli.ts");
  const { status, stdout, stderr } = spawnSync(process.execPath, [cli, ...args], {
    encoding: "utf8",
    maxBuffer: 2 ** 28,
  });
  return { status, text: stdout + stderr };
}

test("A1, K5: every guarantee holds under the faults of a hundred seeds", (t) => {
  const { status, text } = simulateApart("--seeds", "100");
  assert.equal(status, 0, text);
  t.diagnostic(text.trim());
});

test("the same seed gives the same trace, byte for byte", async () => {
  for (let seed = 1; seed <= 8; seed += 1) {
    const once = (await simulate(seed)).trace.join("\n");
    const again = (await simulate(seed)).trace.join("\n");
    assert.ok(once.length > 1_000, "there is a story");
    assert.equal(again, once, `seed ${seed}`);
  }
});

test("another process tells the same story of a seed", () => {
  // The last line tells how long it took.
  const tell = (): string => simulateApart("--seed", "8", "--trace").text.split("\n").slice(0, -2).join("\n");
  assert.equal(tell(), tell());
});

test("between them the seeds see every climate, every end and every kind of fault", async () => {
  const seen = new Set<string>();
  for (let seed = 1; seed <= 60; seed += 1) {
    const result = await simulate(seed);
    seen.add(result.climate);
    for (const state of Object.keys(result.states)) seen.add(state);
    for (const line of result.trace) {
      for (const sign of signs) if (line.includes(sign)) seen.add(sign);
    }
  }
  const expected = ["calm", "crashes", "pauses", "network", "outages", "blackouts", "stops", "all", "storm"];
  const ends = ["succeeded", "dead", "lost", "cancelled"];
  assert.deepEqual(
    [...expected, ...ends, ...signs].filter((one) => !seen.has(one)),
    [],
  );
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
