import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Redis } from "ioredis";
import { Fleet } from "../../../test/processes/fleet.ts";
import { type PrivateServer, testbed } from "../../../testbed/index.ts";
import { systemClock } from "../../clock.ts";
import { silentLogger } from "../../log.ts";
import { newJob } from "../../testing/conformance/scene.ts";
import { patiently } from "../../testing/until.ts";
import { newPrefix, openStore } from "./test/harness.ts";

const shared = await testbed.redisSentinel();
const context = { namespace: "n", clock: systemClock, log: silentLogger };

describe("Redis under Sentinel", { skip: shared.skip }, () => {
  test("it is found by the sentinels, and says that a failover may cost acknowledged writes", async () => {
    const store = await openStore({ url: shared.url, prefix: newPrefix(shared) }, context);
    assert.equal(store.capabilities.durability, "weak");
    assert.match((await store.health()).details["durability"] ?? "", /failover/);
    await store.enqueue({ jobs: [newJob("a")] });
    assert.equal((await store.get({ ids: ["a"] }))[0]?.state, "waiting");
    await store.close();
  });

  test("the primary is killed: calls go on at the next one, with what was replicated [K6]", async () => {
    await using own = await testbed.redisSentinel({ private: true });
    const store = await patiently(() => openStore({ url: own.url, callTimeout: "2s" }, context));
    const before = Array.from({ length: 200 }, (_, n) => newJob(`before ${n}`));
    await patiently(() => store.enqueue({ jobs: before }));
    await replicated(own);
    await own.kill("node-1");
    const ids = Array.from({ length: 20 }, (_, n) => `after ${n}`);
    for (const id of ids) await patiently(() => store.enqueue({ jobs: [newJob(id)] }));
    assert.deepEqual(await patiently(() => store.count({ filter: {}, by: [] })), [{ count: 220 }]);
    await store.close();
  });

  test("nodes live through a failover and lose nothing that was replicated [K6, A3]", async () => {
    await using own = await testbed.redisSentinel({ private: true });
    await using fleet = new Fleet({
      lease: 60_000,
      store: `${own.url}?callTimeout=2s`,
      acceptWeakDurability: true,
    });
    await runThroughFailover(fleet, own);
  });
});

/** Waits until both replicas have everything: what a failover can cost is only what they did not have yet. */
async function replicated(own: PrivateServer): Promise<void> {
  const { password, hosts, primary } = partsOf(own.url);
  const client = new Redis({ sentinels: hosts, name: primary, password });
  // It waits for what this connection wrote, and so for all that was written before.
  await client.set("escapement-test", "written");
  assert.equal(await client.wait(2, 30_000), 2);
  client.disconnect();
}

function partsOf(url: string) {
  const [, password = "", hosts = "", primary = ""] = /:([^@:]*)@([^/]*)\/(.*)$/.exec(url) ?? [];
  const nodes = hosts.split(",").map((text) => {
    const [host = "", port = ""] = text.split(":");
    return { host, port: Number(port) };
  });
  return { password, primary, hosts: nodes };
}

async function runThroughFailover(fleet: Fleet, own: PrivateServer): Promise<void> {
  const nodes = await Promise.all([fleet.start(), fleet.start()]);
  const items = Array.from({ length: 200 }, () => ({ input: { ms: 500, how: "wait" } as const }));
  await fleet.client.enqueueMany(fleet.atLeastOnce, items);
  await replicated(own);
  await fleet.until("a part of the work is done", () => fleet.starts().length > 50);
  await own.kill("node-1");
  let seen: unknown;
  const all = async (): Promise<boolean> => {
    seen = await fleet.client.countBy(["state"]).catch((error: unknown) => error);
    return Array.isArray(seen) && seen.some(({ state, count }) => state === "succeeded" && count === 200);
  };
  await fleet.until("everything has succeeded", all, 120_000).catch((error: unknown) => {
    throw new Error("not everything has succeeded", { cause: { error, seen } });
  });
  assert.equal(new Set(fleet.starts().map(({ id }) => id)).size, 200, "every job ran");
  for (const { exitCode, signalCode } of nodes) assert.deepEqual([exitCode, signalCode], [null, null]);
}
