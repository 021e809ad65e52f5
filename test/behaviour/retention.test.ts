import assert from "node:assert/strict";
import { test } from "node:test";
import { defineJob } from "../../src/index.ts";
import { createTestEscapement } from "../../src/testing/kit.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { onEveryStore } from "./stores.ts";

onEveryStore("retention of a definition", (bed) => {
  test("a node that does not know the definition keeps its jobs as long as it says, also those of schedules", async () => {
    const [store, clock] = [bed.store(), new VirtualClock()];
    const brief = defineJob<null>({ name: "brief", retention: { succeeded: "1m" }, run: () => {} });
    const long = defineJob<null>({ name: "long", retention: { succeeded: "30d" }, run: () => {} });
    const usual = defineJob<null>({ name: "usual", run: () => {} });
    {
      await using app = await createTestEscapement({ store, clock, jobs: [brief, long, usual] });
      await app.enqueue(brief, null, { id: "brief" });
      await app.enqueue(long, null, { id: "long" });
      await app.enqueue(usual, null, { id: "usual" });
      await app.schedule("once", { every: "1h" }, brief, null);
      await app.triggerNow("once");
      await app.unschedule("once");
      await app.runUntilIdle();
      assert.equal(await app.count({ states: ["succeeded"] }), 4);
    }
    await using other = await createTestEscapement({ store, clock, retention: { succeeded: "5m" } });
    const left = async () => (await other.list({})).jobs.map(({ id }) => id).toSorted();
    await other.advance("2m");
    assert.deepEqual(await left(), ["long", "usual"]);
    await other.advance("5m");
    assert.deepEqual(await left(), ["long"]);
  });
});
