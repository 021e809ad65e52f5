import assert from "node:assert/strict";
import { assertAbout, type ConformanceTest, hour, later, minute } from "./scene.ts";
import { edit, fire, firing, put, rule } from "./schedule-scene.ts";

export function scheduleTests(test: ConformanceTest): void {
  test("a schedule is made once, edited on its version, and each edit raises it", async (scene) => {
    const nextAt = later(await scene.now(), hour);
    const made = await put(scene.store, rule("s", nextAt));
    assert.deepEqual([made.version, made.nextAt, made.paused], [1, nextAt, false]);
    assertAbout(made.createdAt, await scene.now(), "createdAt");
    const lost = await scene.store.putSchedule(rule("s", nextAt));
    assert.deepEqual([lost.outcome, lost.schedule], ["conflict", made]);
    const edited = await put(scene.store, edit(made, null, { paused: true, spec: '"new"' }));
    assert.deepEqual(
      [edited.version, edited.nextAt, edited.paused, edited.spec, edited.createdAt],
      [2, null, true, '"new"', made.createdAt],
    );
    assert.equal((await scene.store.putSchedule(edit(made, nextAt))).outcome, "conflict");
    assert.deepEqual(await scene.store.schedules({ keys: null }), [edited]);
  });

  test("editing a schedule that is gone is a conflict with nothing", async (scene) => {
    const conflict = await scene.store.putSchedule(rule("s", null, { ifVersion: 3 }));
    assert.deepEqual(conflict, { outcome: "conflict", schedule: null });
    assert.equal(await scene.store.removeSchedule({ key: "s" }), false);
  });

  test("of two editors at once exactly one wins", async (scene) => {
    await put(scene.store, rule("s", null));
    const other = await scene.open();
    const answers = await Promise.all(
      [scene.store, other].map((store, n) =>
        store.putSchedule(rule("s", null, { ifVersion: 1, spec: `"${n}"` })),
      ),
    );
    assert.deepEqual(answers.map(({ outcome }) => outcome).toSorted(), ["conflict", "put"]);
  });

  test("an edit of a schedule that has fired since it was read is a conflict: nextAt never goes back over what has fired", async (scene) => {
    const fireAt = later(await scene.now(), -minute);
    const read = await put(scene.store, rule("s", fireAt));
    await fire(scene.store, firing(read, fireAt));
    const stale = await scene.store.putSchedule(edit(read, read.nextAt, { paused: true }));
    assert.equal(stale.outcome, "conflict");
    const [fired] = await scene.store.schedules({ keys: ["s"] });
    assert(fired);
    assert.deepEqual(stale.schedule, fired, "what stands now is told");
    assert.deepEqual([fired.nextAt, fired.version], [later(fireAt, hour), read.version]);
    await put(scene.store, edit(fired, fired.nextAt, { paused: true }));
    const [paused] = await scene.store.schedules({ keys: ["s"] });
    assert.equal(paused?.paused, true);
    // A schedule that has come to its end is one that has fired, too.
    const last = await put(scene.store, rule("once", fireAt));
    await fire(scene.store, firing(last, fireAt, { advanceTo: null }));
    assert.equal((await scene.store.putSchedule(edit(last, fireAt))).outcome, "conflict");
  });

  test("no version of a key comes twice, also when it was removed and made again", async (scene) => {
    const fireAt = later(await scene.now(), -minute);
    const first = await put(scene.store, rule("s", fireAt));
    assert.equal(await scene.store.removeSchedule({ key: "s" }), true);
    assert.deepEqual(await scene.store.schedules({ keys: null }), []);
    const second = await put(scene.store, rule("s", fireAt));
    assert(second.version > first.version);
    assert.equal((await fire(scene.store, firing(first, fireAt))).outcome, "stale");
  });

  test("due schedules come oldest first, without the paused, with the time of the next", async (scene) => {
    const now = await scene.now();
    await put(scene.store, rule("young", later(now, -minute)));
    await put(scene.store, rule("old", later(now, -hour)));
    await put(scene.store, rule("paused", later(now, -hour), { paused: true }));
    await put(scene.store, rule("paused for later", later(now, minute), { paused: true }));
    await put(scene.store, rule("retired", null));
    await put(scene.store, rule("far", later(now, 9 * hour)));
    await put(scene.store, rule("near", later(now, 5 * hour)));
    const { due, nextAt, now: asked } = await scene.store.dueSchedules({ limit: 10 });
    assert.deepEqual(
      due.map(({ key }) => key),
      ["old", "young"],
    );
    assert.deepEqual(nextAt, later(now, 5 * hour));
    assertAbout(asked, now, "now");
    assert.equal((await scene.store.dueSchedules({ limit: 1 })).due[0]?.key, "old");
  });
}
