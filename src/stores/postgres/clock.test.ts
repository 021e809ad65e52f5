import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testbed } from "../../../testbed/index.ts";
import { Escapement } from "../../app/escapement.ts";
import { type Clock, systemClock } from "../../clock.ts";
import { defineJob } from "../../definition.ts";
import { silentLogger } from "../../log.ts";
import { systemRuntime } from "../../runtime/runtime.ts";
import type { Store } from "../../store/store.ts";
import { newJob } from "../../testing/conformance/scene.ts";
import { until } from "../../testing/until.ts";
import { postgres } from "./index.ts";
import { newSchema } from "./test/harness.ts";

const server = await testbed.postgres();
const fiveMinutesMs = 300_000;

/** A machine's clock that is set wrong. */
function wrongBy(ms: number): Clock {
  return { ...systemClock, now: () => Date.now() + ms };
}

function open(schema: string, clock: Clock): Promise<Store> {
  return postgres({ url: server.url, schema }).open({ namespace: "n", clock, log: silentLogger });
}

describe("the clock of the Postgres store is the server's", { skip: server.skip }, () => {
  test("nodes whose clocks are off by five minutes fire neither early nor twice [A2, B7]", async () => {
    const schema = newSchema();
    const starts: { readonly id: string; readonly atMs: number }[] = [];
    const job = defineJob<object>({
      name: "job",
      run({ job: { id } }) {
        starts.push({ id, atMs: performance.now() });
      },
    });
    const nodes = [-fiveMinutesMs, fiveMinutesMs].map((ms) => {
      const store = postgres({ url: server.url, schema });
      return new Escapement(
        { store, jobs: [job], poll: 50, log: silentLogger },
        { ...systemRuntime, clock: wrongBy(ms) },
      );
    });
    const [behind, ahead] = nodes;
    assert(behind && ahead);
    for (const node of nodes) await node.start();
    const sentAtMs = performance.now();
    const delayMs = 400;
    for (const [n, node] of [behind, ahead, behind, ahead].entries()) {
      await node.enqueue(job, {}, { id: `job ${n}`, delay: delayMs });
    }
    await until("all have run", () => starts.length >= 4);
    for (const { atMs } of starts)
      assert(atMs - sentAtMs >= delayMs - 1, `${atMs - sentAtMs} ms after it was enqueued`);
    await until("all outcomes are written", async () => (await ahead.count({ states: ["succeeded"] })) === 4);
    for (const node of nodes) await node.stop();
    assert.deepEqual(starts.map(({ id }) => id).toSorted(), ["job 0", "job 1", "job 2", "job 3"]);
  });

  test("a lease runs out by the server's clock, whatever the reaper's own says [A3]", async () => {
    const schema = newSchema();
    const holder = await open(schema, wrongBy(-fiveMinutesMs));
    await holder.migrate();
    const reaper = await open(schema, wrongBy(fiveMinutesMs));
    await holder.enqueue({ jobs: [newJob("a")] });
    const names = [{ name: "work", concurrency: null, rate: null }];
    const leaseMs = 500;
    const since = performance.now();
    await holder.claim({ claimer: "c", sequence: 1, leaseMs, limit: 1, queues: null, names, alone: false });
    await until("its lease ran out", async () => (await reaper.reap({ limit: 1 })).reaped.length === 1);
    assert(performance.now() - since >= leaseMs - 1);
    await holder.close();
    await reaper.close();
  });

  test("how far this node's clock is from the server's is told", async () => {
    const store = await open(newSchema(), wrongBy(fiveMinutesMs));
    const { details, now } = await store.health();
    assert(Math.abs(Number(details["clock difference in ms"]) + fiveMinutesMs) < 60_000);
    assert(Math.abs(now.getTime() - Date.now()) < 60_000);
    await store.close();
  });
});
