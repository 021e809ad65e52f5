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
