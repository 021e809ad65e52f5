import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../src/clock.ts";
import { defineJob, EscapementError } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { onEveryStore } from "./stores.ts";

onEveryStore("starting without a schema", (bed) => {
  test("throws one error, and reports no other beside it", async (context) => {
    const errors: unknown[] = [];
    const job = defineJob({ name: "job", run: () => {} });
    const app = new TestEscapement(
      { store: bed.store(), jobs: [job], migrate: false, log: silentLogger },
      new VirtualClock(),
    );
    app.on("error", (error) => void errors.push(error));
    const { durability } = (await app.health()).capabilities;
    const failure = await app.start().then(
      () => null,
      (error: unknown) => error,
    );
    await app.stop();
    if (failure === null && durability === "none") return context.skip("it needs no schema");
    assert(failure instanceof EscapementError);
    assert.match(`${failure.code}: ${failure.message}`, /^store-unmigrated: .* run "escapement migrate"/);
    assert.deepEqual(errors, []);
  });
});

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
