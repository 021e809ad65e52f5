import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../src/clock.ts";
import { silentLogger } from "../../src/log.ts";
import { onEveryStore } from "./stores.ts";

onEveryStore("opening what must exist", (bed) => {
  test("makes nothing, and says what to do; what is there is read", async (context) => {
    const factory = bed.store();
    const place = { namespace: "must exist", clock: systemClock, log: silentLogger };
    const asking = { ...place, mustExist: true };
    if ((await factory.open(place)).capabilities.durability === "none")
      return context.skip("everything in it ends with its process, so nothing is there to be found");
    const fresh = bed.store();
    for (const which of ["first", "second: the first made nothing"]) {
      const store = await fresh.open(asking);
      await assert.rejects(
        store.queues(),
        { code: "store-unmigrated", message: /escapement migrate/ },
        which,
      );
      await assert.rejects(store.nodes(), { code: "store-unmigrated" }, which);
      await store.pendingMigrations();
      await store.close();
    }
    const made = await fresh.open(place);
    await made.migrate();
    await made.configureQueue({ queue: "mail", paused: true });
    const store = await fresh.open(asking);
    assert.deepEqual(
      (await store.queues()).map(({ queue }) => queue),
      ["mail"],
    );
    assert.deepEqual(await store.pendingMigrations(), []);
    assert.equal(
      (await store.usage({ queue: "mail", concurrencyKey: null, rateKey: null })).activeInQueue,
      0,
    );
    await store.close();
    await made.close();
  });
});
