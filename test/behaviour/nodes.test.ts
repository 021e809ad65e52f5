import assert from "node:assert/strict";
import { test } from "node:test";
import { sleep } from "../../src/clock.ts";
import { defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { createTestEscapement } from "../../src/testing/kit.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { onEveryStore } from "./stores.ts";

onEveryStore("nodes", (bed) => {
  test("others see soon how many jobs a node has at work", async () => {
    const clock = new VirtualClock();
    const job = defineJob<null>({ name: "job", run: ({ signal }) => sleep(clock, 5_000, signal) });
    await using app = await createTestEscapement({
      store: bed.store(),
      clock,
      jobs: [job],
      log: silentLogger,
    });
    const active = async () => (await app.nodes()).map((node) => node.active);
    await app.enqueue(job, null);
    await clock.advance(1_500);
    assert.deepEqual(await active(), [1]);
    await clock.advance(5_500);
    assert.deepEqual(await active(), [0]);
  });

  test("others see what a node has run for a while, and how much is left of its lease", async () => {
    const clock = new VirtualClock();
    const job = defineJob<null>({ name: "job", run: ({ signal }) => sleep(clock, 90_000, signal) });
    await using app = await createTestEscapement({
      store: bed.store(),
      clock,
      jobs: [job],
      log: silentLogger,
    });
    const running = async () => (await app.nodes()).flatMap((node) => node.running ?? []);
    const { id } = await app.enqueue(job, null);
    await clock.advance(500);
    assert.deepEqual(await running(), []);
    await clock.advance(60_000);
    const [one, ...others] = await running();
    assert.deepEqual([one?.id, one?.name, others], [id, "job", []]);
    assert(one !== undefined && one.forMs > 30_000 && one.forMs <= 60_500, `it ran for ${one?.forMs} ms`);
    assert(one.leaseMs > 0 && one.leaseMs <= 30_000, `its lease has ${one.leaseMs} ms left`);
    await clock.advance(35_000);
    assert.deepEqual(await running(), []);
  });

  test("the ledger names the node that planned an occurrence by the id that it shows", async () => {
    const clock = new VirtualClock();
    const job = defineJob<null>({ name: "job", run: () => {} });
    await using app = await createTestEscapement({
      store: bed.store(),
      clock,
      jobs: [job],
      log: silentLogger,
    });
    await app.schedule("often", { every: "10s" }, job, null);
    await clock.advance(25_000);
    const [node] = await app.nodes();
    const rows = await app.occurrences("often");
    assert.ok(rows.length > 0);
    assert.deepEqual([...new Set(rows.map((row) => row.node))], [node?.id]);
  });
});
