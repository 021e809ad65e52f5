import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { type SimulationResult, simulate } from "./simulation.ts";

const seeds = 1_000;
const seedsPerTest = 100;

for (let first = 1; first <= seeds; first += seedsPerTest) {
  const last = first + seedsPerTest - 1;
  test(`every guarantee holds under the faults of seeds ${first} to ${last}`, async () => {
    const failures: string[] = [];
    for (let seed = first; seed <= last; seed += 1) failures.push(...describeFailure(await simulate(seed)));
    assert.deepEqual(failures, []);
  });
}

/** Small enough to be swept whole. */
const sweptSeed = 22;

test("a process may die at any of its calls, before it, after the store has done it, or with its answer", async () => {
  const faults = ["crash-before", "crash-between", "crash-after"] as const;
  const { calls } = await simulate(sweptSeed, { crashPoint: { call: 0, fault: "crash-before" } });
  const failures: string[] = [];
  for (let call = 1; call <= calls; call += 1) {
    const fault = faults[call % faults.length] ?? "crash-before";
    const [violation] = (await simulate(sweptSeed, { crashPoint: { call, fault } })).violations;
    if (violation !== undefined)
      failures.push(`${fault} ${call}: "${violation.invariant}": ${violation.detail}`);
  }
  assert.deepEqual(failures, []);
});

test("the same seed gives the same trace, byte for byte", async () => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const once = (await simulate(seed)).trace.join("\n");
    const again = (await simulate(seed)).trace.join("\n");
    assert.ok(once.length > 1_000, "there is a story");
    assert.equal(again, once, `seed ${seed}`);
  }
});

test("another process tells the same story of a seed", () => {
  const cli = join(import.meta.dirname, "cli.ts");
  const tell = (): string =>
    execFileSync(process.execPath, [cli, "--seed", "8", "--trace"], { encoding: "utf8" })
      .split("\n")
      // The last line tells how long it took.
      .slice(0, -2)
      .join("\n");
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
  const expected = ["calm", "crashes", "pauses", "network", "outages", "stops", "all", "storm"];
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
];

function describeFailure({ seed, climate, violations }: SimulationResult): string[] {
  const [violation] = violations;
  if (violation === undefined) return [];
  const { invariant, detail } = violation;
  return [
    `seed ${seed} (${climate}) breaks "${invariant}": ${detail}; npm run simulate -- --seed ${seed} --trace`,
  ];
}
