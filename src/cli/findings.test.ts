import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { defineJob } from "../definition.ts";
import type { SeenNode } from "../store/nodes.ts";
import { type Facts, findingsOf } from "./findings.ts";
import { assertPasteable } from "./test/advised-command.ts";

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
  counts: [{ queue: "q", name: "job", state: "waiting", count: 3 }],
  oldest: [],
  nodes: [node],
  queues: [],
  schedules: [],
};

const counts = (name: string, count: number): Facts["counts"] => [
  { queue: "q", name, state: "waiting", count },
];
const relay: SeenNode = { ...node, id: "r1", roles: ["relay"], names: ["pay"] };
const nowhere = { kind: "nowhere", address: "", open: () => assert.fail() };
const pay = defineJob({
  name: "pay",
  route: { transport: nowhere, destination: "-", dispatchTimeoutMs: 1_000 },
});

/** A job that is to be published. */
function routed(id: string, given: Partial<Facts["oldest"][number]> = {}): Facts["oldest"][number] {
  return { id, name: "pay", relayed: true, rollbacks: 0, error: null, claimedAt: null, ...given };
}

/** What is found beyond what is well. */
function found(facts: Partial<Facts>): string[] {
  const findings = findingsOf({ ...well, ...facts });
  for (const { advice } of findings) assertPasteable(advice);
  return findings
    .filter(({ level }) => level !== "ok")
    .map(({ level, what, advice }) => `${level}: ${what} → ${advice}`);
}

describe("the doctor", () => {
  test("finds nothing wrong where nothing is", () => {
    assert.deepEqual(found({}), []);
  });

  test("says sizes as a person does", () => {
    const details = {
      "size in bytes": "19236904",
      maxmemory: "0",
      max_allowed_packet: "16777216",
      file: "app.db",
      slots: "1",
    };
    const said = findingsOf({ ...well, health: { ...well.health, details } }).map(({ what }) => what);
    assert.deepEqual(said.slice(1, 6), [
      "size: 18 MB",
      "maxmemory: 0",
      "max_allowed_packet: 16 MB",
      "file: app.db",
      "slots: 1",
    ]);
  });

  test("finds each thing that weakens a guarantee or keeps jobs from running, and says what to do", () => {
    const capabilities = { ...well.health.capabilities, durability: "weak" } as const;
    const cases: [Partial<Facts>, RegExp][] = [
      [
        { health: { ...well.health, capabilities } },
        /^warning: durability.*acceptWeakDurability lets job run/,
      ],
      [
        { health: { ...well.health, capabilities, engine: "SQLite 3" }, definitions: [] },
        /^warning: durability: acknowledged writes may be forgotten.* → open it with durability: "full"$/,
      ],
      [
        { health: { ...well.health, problems: ["the index x is missing: make it"] } },
        /^problem: the index x is missing → make it/,
      ],
      [{ clockOffsetMs: { least: 300_000, most: 300_010 } }, /^warning: clock.*5m ahead/],
      [{ clockOffsetMs: { least: -300_010, most: -300_000 } }, /^warning: clock.*5m behind/],
      [{ settings: { ...well.settings, leaseMs: 1_000 } }, /^warning: lease: 1s is short/],
      [
        { counts: [{ queue: "q", name: "other", state: "waiting", count: 2 }] },
        /^warning: 2 waiting jobs of "other" in queue "q": no living node handles "other" → start a node/,
      ],
      [
        {
          schedules: [
            { key: "s", paused: false, nextAt: null },
            { key: "t", paused: false, nextAt: null, unreadable: "unreadable: job: x" },
          ],
        },
        /^warning: schedule "t" does not fire: unreadable: job: x → define it again, or remove it: escapement schedules rm t$/,
      ],
      [
        { schedules: [{ key: "nightly", paused: true, nextAt: new Date(0) }] },
        /^warning: schedule "nightly" is paused → resume it: escapement schedules resume nightly$/,
      ],
      [
        {
          health: { ...well.health, now: new Date(10 * 60_000) },
          nodes: [{ ...node, roles: ["worker", "planner"] }],
          schedules: [
            { key: "late", paused: false, nextAt: new Date(0) },
            { key: "soon", paused: false, nextAt: new Date(10 * 60_000 - 1) },
            { key: "over", paused: false, nextAt: null },
          ],
        },
        /^warning: schedule "late" is behind: it has been due for 10m although a planner is alive → .*log of n1/,
      ],
      [
        { oldest: [routed("a"), routed("b", { unreadable: ["tags"] })] },
        /^warning: 1 of the 2 oldest waiting jobs looked at cannot be read completely.* → escapement explain b$/,
      ],
      [{ counts: [{ name: "job", state: "dead", count: 1 }] }, /^warning: 1 job is dead/],
      [
        { counts: [{ name: "job", state: "lost", count: 4 }] },
        /^warning: 4 jobs are lost → they may have run.*redrive only those that did not/,
      ],
      [
        { queues: [{ queue: "q", paused: true, concurrency: null, rate: null }] },
        /^warning: queue "q" is paused → resume it: escapement queues resume q$/,
      ],
      [
        { queues: [{ queue: "mial", paused: true, concurrency: null, rate: null }] },
        /^warning: queue "mial" is paused, and no job is in it → check its name \(queues with jobs: q\), or resume it/,
      ],
      [
        { nodes: [{ ...node, queues: ["mail"] }] },
        /^warning: 3 waiting jobs of "job" in queue "q": node n1 handles "job", but not in queue "q" → start a node/,
      ],
    ];
    for (const [facts, expected] of cases) {
      const [first, ...others] = found(facts);
      assert.match(first ?? "", expected);
      assert.deepEqual(others, []);
    }
    const silent = found({ nodes: [{ ...node, alive: false }] });
    assert.equal(silent.length, 2, "no node is alive, and nobody handles the job");
    assert.doesNotMatch(silent.join(), /jobs cancel/, "what is down comes back");
  });

  test("jobs with a route want a relay, whether a definition or a job tells of the route", () => {
    const facts = { counts: counts("pay", 2) };
    const missing = (more: string) => [
      `warning: 2 waiting jobs of "pay" in queue "q": no living relay publishes "pay"${more} → they have a route: start a node whose jobs include it, with the role relay among its roles; if they are not wanted: escapement jobs cancel --state waiting --name pay --queue q`,
    ];
    const none = missing(": no relay is alive");
    assert.deepEqual(found({ ...facts, definitions: [pay] }), none);
    assert.deepEqual(found({ ...facts, oldest: [routed("p")] }), none);
    const worker = { ...node, names: ["pay"] };
    assert.deepEqual(found({ ...facts, definitions: [pay], nodes: [worker] }), none, "it runs no relay");
    assert.deepEqual(found({ ...facts, definitions: [pay], nodes: [node, relay] }), []);
    assert.deepEqual(
      found({ ...facts, definitions: [pay], nodes: [node, { ...relay, alive: false }] }),
      missing(": no relay is alive; r1 did, and has been silent since 1970-01-01T00:00:00.000Z"),
    );
  });

  test("the canary is the relays' own", () => {
    assert.deepEqual(found({ counts: counts("escapement-canary", 1), nodes: [relay] }), []);
  });

  test("jobs that a broker refused are told by name, with the latest error and where to look", () => {
    const error = (message: string) => ({ name: "Error", message });
    const oldest = [
      routed("a", { rollbacks: 1, error: error("old"), claimedAt: new Date(1) }),
      routed("b", { rollbacks: 4, error: error("the broker is full\nat once"), claimedAt: new Date(3) }),
      routed("c"),
      routed("d", { name: "mail", rollbacks: 1 }),
      routed("e", { name: "plain", relayed: false, error: error("a handler's") }),
    ];
    assert.deepEqual(found({ oldest }), [
      'warning: "pay": 2 of the 5 oldest waiting jobs looked at could not be published and wait for another attempt, the latest with Error: the broker is full → escapement explain b',
      'warning: "mail": 1 of the 5 oldest waiting jobs looked at could not be published and waits for another attempt → escapement explain d',
    ]);
  });
});
