import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { defineJob } from "../definition.ts";
import type { SeenNode } from "../store.ts";
import { diagnose, type Facts } from "./diagnose.ts";

const node: SeenNode = {
  id: "n1",
  host: "h",
  pid: 1,
  version: "0",
  roles: ["worker"],
  queues: null,
  names: ["job"],
  concurrency: 1,
  active: 0,
  ttlMs: 1,
  startedAt: new Date(0),
  seenAt: new Date(0),
  alive: true,
};

const well: Facts = {
  health: {
    now: new Date(0),
    engine: "E 1",
    schemaVersion: 1,
    details: {},
    problems: [],
    capabilities: {
      transactions: true,
      listen: true,
      timePrecisionMs: 1,
      durability: "full",
      acrossSlots: true,
    },
  },
  clockOffsetMs: { least: -5, most: 5 },
  definitions: [defineJob({ name: "job", delivery: "at-most-once" })],
  settings: { leaseMs: 30_000, acceptWeakDurability: true },
  counts: [{ name: "job", state: "waiting", count: 3 }],
  nodes: [node],
  queues: [],
};

/** What is found beyond what is well. */
function found(facts: Partial<Facts>): string[] {
  return diagnose({ ...well, ...facts })
    .filter(({ level }) => level !== "ok")
    .map(({ level, what, advice }) => `${level}: ${what} → ${advice}`);
}

describe("the doctor", () => {
  test("finds nothing wrong where nothing is", () => {
    assert.deepEqual(found({}), []);
  });

  test("finds each thing that weakens a guarantee or keeps jobs from running, and says what to do", () => {
    const capabilities = { ...well.health.capabilities, durability: "weak" } as const;
    const cases: [Partial<Facts>, RegExp][] = [
      [
        { health: { ...well.health, capabilities } },
        /^warning: durability.*acceptWeakDurability lets job run/,
      ],
      [
        { health: { ...well.health, problems: ["the index x is missing: make it"] } },
        /^problem: the index x is missing → make it/,
      ],
      [{ clockOffsetMs: { least: 300_000, most: 300_010 } }, /^warning: clock.*5m ahead/],
      [{ clockOffsetMs: { least: -300_010, most: -300_000 } }, /^warning: clock.*5m behind/],
      [{ settings: { ...well.settings, leaseMs: 1_000 } }, /^warning: lease: 1s is short/],
      [
        { counts: [{ name: "other", state: "waiting", count: 2 }] },
        /^warning: 2 waiting jobs of "other", which no living node/,
      ],
      [{ counts: [{ name: "job", state: "dead", count: 1 }] }, /^warning: 1 job is dead/],
      [{ counts: [{ name: "job", state: "lost", count: 4 }] }, /^warning: 4 jobs are lost/],
      [
        { queues: [{ queue: "q", paused: true, concurrency: null, rate: null }] },
        /^warning: queue "q" is paused/,
      ],
    ];
    for (const [facts, expected] of cases) {
      const [first, ...others] = found(facts);
      assert.match(first ?? "", expected);
      assert.deepEqual(others, []);
    }
    assert.deepEqual(
      found({ nodes: [{ ...node, alive: false }] }).length,
      2,
      "no node is alive, and nobody handles the job",
    );
  });
});
