import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { describe, test } from "node:test";
import { Fleet } from "../../../test/processes/fleet.ts";
import { assertShared } from "../../../test/processes/sharing.ts";
import { testbed } from "../../../testbed/index.ts";
import { FaultProxy } from "../../proof/proxy.ts";
import { admin } from "./test/admin.ts";
import { newPrefix } from "./test/harness.ts";

const server = await testbed.redis();

/** How long the way to the server is cut; CI takes half a minute. */
const cutMs = Number(process.env["ESCAPEMENT_CUT_SECONDS"] ?? 2) * 1_000;

const withPrefix = (url: string): string => `${url}?prefix=${newPrefix(server)}`;

/** Starts two nodes, gives them work of both kinds, and harms their server in the middle of it. */
async function workThrough(fleet: Fleet, jobs: number, harm: () => Promise<void>): Promise<void> {
  const nodes = await Promise.all([fleet.start(), fleet.start()]);
  const items = Array.from({ length: jobs }, () => ({ input: { ms: 20, how: "wait" } as const }));
  await fleet.client.enqueueMany(fleet.atMostOnce, items);
  await fleet.client.enqueueMany(fleet.atLeastOnce, items);
  await fleet.until("a part of the work is done", () => fleet.starts().length > jobs / 2);
  await harm();
  const all = async (): Promise<boolean> =>
    (await fleet.client.count({ states: ["succeeded"] }).catch(() => 0)) === 2 * jobs;
  await fleet.until("everything has succeeded", all, 60_000 + cutMs);
  assertEachOnce(fleet, 2 * jobs);
  assertAllAlive(nodes);
}

/** A cut shorter than the lease runs nothing twice: claims and outcomes are repeated until they are answered. */
function assertEachOnce(fleet: Fleet, jobs: number): void {
  assert.equal(new Set(fleet.starts().map(({ id }) => id)).size, jobs, "every job ran");
  assert.equal(fleet.starts().length, jobs, "no job ran twice");
  assert.ok(fleet.lines.every(({ what }) => what !== "stale"));
}

function assertAllAlive(nodes: readonly ChildProcess[]): void {
  for (const { exitCode, signalCode } of nodes)
    assert.deepEqual([exitCode, signalCode], [null, null], "a node ended");
}

describe("real processes on Redis", { skip: server.skip }, () => {
  test("four processes at once dispatch each job exactly once [K1, K11, C1]", async () => {
    await assertShared(withPrefix(server.url));
  });

  test("a server that crashes and comes back runs no job twice and ends no process [K6, A3]", async () => {
    await using own = await testbed.redis({ private: true });
    await using fleet = new Fleet({ lease: 60_000, store: own.url });
    await workThrough(fleet, 200, async () => {
      await own.kill();
      await own.restart();
    });
  });

  test("killed connections and flushed scripts run no job twice and end no process [K6, C3]", async () => {
    await using own = await testbed.redis({ private: true });
    await using redis = await admin(own.url);
    await using fleet = new Fleet({ lease: 60_000, store: own.url });
    await workThrough(fleet, 200, async () => {
      for (let round = 0; round < 10; round += 1) {
        await redis.call("SCRIPT", "FLUSH");
        await redis.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
        await redis.call("CLIENT", "KILL", "TYPE", "pubsub");
        const before = fleet.starts().length;
        const isDone = (): boolean => fleet.starts().length === 400;
        await fleet.until("work goes on", () => fleet.starts().length > before || isDone());
      }
    });
  });

  test("a black hole shorter than the lease runs no job twice and ends no process [K6, A7]", async () => {
    await using proxy = await FaultProxy.start(server.url);
    await using fleet = new Fleet({ lease: 60_000 + 2 * cutMs, store: withPrefix(proxy.url) });
    await workThrough(fleet, 200, async () => proxy.blackHole(cutMs));
  });

  test("lost answers run no job twice and end no process [K6, C3]", async () => {
    await using proxy = await FaultProxy.start(server.url);
    await using fleet = new Fleet({ lease: 60_000, store: withPrefix(proxy.url) });
    await workThrough(fleet, 200, async () => {
      for (let round = 0; round < 5; round += 1) {
        proxy.dropReplies(50);
        const before = fleet.starts().length;
        const isDone = (): boolean => fleet.starts().length === 400;
        await fleet.until("work goes on", () => fleet.starts().length > before || isDone());
      }
    });
  });
});
