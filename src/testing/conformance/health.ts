import assert from "node:assert/strict";
import { assertAbout, type ConformanceTest, hour, later, newJob } from "./scene.ts";

export function healthTests(test: ConformanceTest): void {
  test("migrating again is harmless, also with jobs inside and from several handles at once", async (scene) => {
    await scene.add(newJob("a"));
    const other = await scene.open();
    await Promise.all([scene.store.migrate(), other.migrate(), scene.store.migrate()]);
    assert.equal(await scene.stateOf("a"), "waiting");
  });

  test("health tells the store's time, which moves on, and what stands behind it", async (scene) => {
    const before = await scene.store.health();
    await scene.advance(hour);
    const after = await scene.store.health();
    assertAbout(after.now, later(before.now, hour), "now");
    assert.notEqual(after.engine, "");
    assert(after.schemaVersion >= 1);
    for (const [setting, value] of Object.entries(after.details))
      assert.equal(typeof value, "string", setting);
  });

  test("a migrated store has nothing left to migrate, and nothing wrong with it", async ({ store }) => {
    assert.deepEqual(await store.pendingMigrations(), []);
    assert.deepEqual((await store.health()).problems, []);
  });

  test("capabilities are declared as data", async ({ store }) => {
    const { transactions, listen, timePrecisionMs, durability } = store.capabilities;
    assert.equal(typeof transactions, "boolean");
    assert.equal(typeof listen, "boolean");
    assert(timePrecisionMs > 0 && timePrecisionMs <= 1_000);
    assert(["full", "weak", "none"].includes(durability));
  });

  test("a handle that was closed refuses every verb, and others go on", async (scene) => {
    const other = await scene.open();
    await scene.shut(other);
    await assert.rejects(other.get({ ids: ["a"] }));
    await assert.rejects(other.enqueue({ jobs: [newJob("a")] }));
    assert.equal(await scene.stateOf("a"), null);
  });
}
