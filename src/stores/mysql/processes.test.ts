import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { describe, test } from "node:test";
import { createConnection } from "mysql2/promise";
import { Fleet } from "../../../test/processes/fleet.ts";
import { assertShared } from "../../../test/processes/sharing.ts";
import { testbed } from "../../../testbed/index.ts";
import { FaultProxy } from "../../proof/proxy.ts";
import { kill, otherConnections } from "./test/other-connections.ts";

const server = await testbed.mysql();

/** How long the way to the server is cut; CI takes half a minute. */
const cutMs = Number(process.env["ESCAPEMENT_CUT_SECONDS"] ?? 2) * 1_000;

/** Starts so many nodes, gives them work of both kinds, and harms their server in the middle of it. */
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

/** Ends every connection to the database but this one. */
async function killOthers(admin: Awaited<ReturnType<typeof createConnection>>): Promise<void> {
  for (const id of await otherConnections(admin)) await kill(admin, id);
}

describe("real processes on MariaDB or MySQL", { skip: server.skip }, () => {
  test("four processes at once dispatch each job exactly once [K1, K7, K11, C1]", async () => {
    const own = await testbed.mysql();
    await assertShared(own.url);
  });

  test("a job that another process enqueues is picked up long before the next poll", async () => {
    const own = await testbed.mysql();
    await using fleet = new Fleet({ lease: 60_000, store: own.url, poll: 600_000 });
    await fleet.start();
    // The first may be found by the trip that every node begins with, another by the trip that wrote the end of the one before.
    for (const id of ["first", "second", "third", "fourth"]) {
      await fleet.client.enqueue(fleet.atLeastOnce, { ms: 0, how: "wait" }, { id });
      await fleet.until(`${id} has run`, async () => (await fleet.state(id)) === "succeeded");
    }
  });

  test("a server that crashes and comes back runs no job twice and ends no process [K6, A3]", async () => {
    await using own = await testbed.mysql({ private: true });
    await using fleet = new Fleet({ lease: 60_000, store: own.url });
    await workThrough(fleet, 200, async () => {
      await own.kill();
      await own.restart();
    });
  });

  test("connections that are killed again and again run no job twice and end no process [K6]", async () => {
    const own = await testbed.mysql();
    const admin = await createConnection(own.url);
    await using _ = { [Symbol.asyncDispose]: () => admin.end() };
    await using fleet = new Fleet({ lease: 60_000, store: own.url });
    await workThrough(fleet, 200, async () => {
      for (let round = 0; round < 10; round += 1) {
        await killOthers(admin);
        await progress(fleet);
      }
    });
  });

  test("a black hole shorter than the lease runs no job twice and ends no process [K6, A7]", async () => {
    await using proxy = await FaultProxy.start((await testbed.mysql()).url);
    await using fleet = new Fleet({ lease: 60_000 + 2 * cutMs, store: proxy.url });
    await workThrough(fleet, 200, async () => proxy.blackHole(cutMs));
  });

  test("lost answers run no job twice and end no process [K6, C3]", async () => {
    await using proxy = await FaultProxy.start((await testbed.mysql()).url);
    await using fleet = new Fleet({ lease: 60_000, store: proxy.url });
    await workThrough(fleet, 200, async () => {
      for (let round = 0; round < 5; round += 1) {
        proxy.dropReplies(50);
        await progress(fleet);
      }
    });
  });
});

async function progress(fleet: Fleet): Promise<void> {
  const before = fleet.starts().length;
  await fleet.until("work goes on", () => fleet.starts().length > before || fleet.starts().length === 400);
}
