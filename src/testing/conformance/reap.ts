import assert from "node:assert/strict";
import { leaseMs, named } from "./claimer.ts";
import { assertAbout, type ConformanceTest, hour, minute, newJob, succeed } from "./scene.ts";

export function reapTests(test: ConformanceTest): void {
  test("a silent worker's job is waiting again after its lease, with the crash counted and told [C2, A3]", async (scene) => {
    await scene.add(newJob("a"));
    await scene.claimer("silent").one();
    await scene.advance(leaseMs / 2);
    assert.deepEqual(await scene.reapAll(), []);
    assert.deepEqual(await scene.claimer("eager").ids(), []);
    await scene.advance(leaseMs);
    const { reaped, more } = await scene.store.reap({ limit: 10 });
    const reason = "its lease ran out";
    assert.deepEqual(reaped, [{ id: "a", name: "work", queue: "default", state: "waiting", reason }]);
    assert.equal(more, false);
    const job = await scene.job("a");
    assert.deepEqual([job.crashes, job.attempt, job.reason], [1, 1, reason]);
    const [line] = await scene.trail("a");
    assert.deepEqual([line?.kind, line?.text, line?.claimer, line?.token], ["crashed", reason, "silent", 1]);
    const again = await scene.claimer("eager").one();
    assert.deepEqual([again.token, again.attempt, again.crashes], [2, 2, 1]);
  });

  test("an at-most-once job whose worker fell silent is lost and never claimed again by itself [K1, K8]", async (scene) => {
    await scene.add(newJob("a", { delivery: "at-most-once" }));
    await scene.claimer("silent").one();
    await scene.advance(2 * leaseMs);
    await scene.reapAll();
    const job = await scene.job("a");
    assert.deepEqual([job.state, job.reason], ["lost", "its lease ran out"]);
    assertAbout(job.finishedAt, await scene.now(), "finishedAt");
    await scene.advance(24 * hour);
    assert.deepEqual(await scene.claimer("eager").ids(), []);
  });

  test("crashes up to the last make a job dead as poison", async (scene) => {
    await scene.add(newJob("a", { maxCrashes: 1 }));
    await scene.claimer().one();
    await scene.advance(2 * leaseMs);
    const { reaped } = await scene.store.reap({ limit: 10 });
    assert.equal(reaped[0]?.state, "dead");
    assert.match(reaped[0]?.reason ?? "", /poison/);
  });

  test("a lease that runs out while a cancel was asked ends as cancelled", async (scene) => {
    await scene.add(newJob("a"));
    await scene.claimer().one();
    await scene.cancel("a");
    await scene.advance(2 * leaseMs);
    await scene.reapAll();
    assert.equal(await scene.stateOf("a"), "cancelled");
  });

  test("a reap that is bound to an earlier mark leaves alone what ran out since, and says that there is more", async (scene) => {
    await scene.add(newJob("early"));
    await scene.claimer("first").one();
    await scene.advance(leaseMs / 2);
    await scene.add(newJob("late"), newJob("expiring", { expireInMs: leaseMs, delayMs: leaseMs / 4 }));
    await scene.claimer("second").one();
    await scene.advance(leaseMs / 2 + 1_000);
    const { reaped, mark } = await scene.store.reap({ limit: 10, until: 0 });
    assert.deepEqual(reaped, [], "no lease has run out by the beginning of time");
    await scene.advance(leaseMs);
    const bound = await scene.store.reap({ limit: 10, until: mark });
    assert.deepEqual(bound.reaped.map(({ id }) => id).toSorted(), ["early", "expiring"]);
    assert.equal(bound.more, true);
    assert.ok(bound.mark - mark >= leaseMs - 1_000, `marks rise with time: ${mark}, ${bound.mark}`);
    const rest = await scene.store.reap({ limit: 10, until: bound.mark });
    assert.deepEqual([rest.reaped.map(({ id }) => id), rest.more], [["late"], false]);
  });

  test("reaping goes in batches, says whether there is more, and reaps nothing twice", async (scene) => {
    await scene.add(...["a", "b", "c"].map((id) => newJob(id)));
    await scene.claimer().take();
    await scene.advance(2 * leaseMs);
    const first = await scene.store.reap({ limit: 2 });
    assert.deepEqual([first.reaped.length, first.more], [2, true]);
    const second = await scene.store.reap({ limit: 2 });
    assert.deepEqual([second.reaped.length, second.more], [1, false]);
    const last = await scene.store.reap({ limit: 2 });
    assert.deepEqual([last.reaped, last.more], [[], false]);
  });

  test("two reapers at once reap each claim once", async (scene) => {
    const ids = Array.from({ length: 20 }, (_, n) => `j${n}`);
    await scene.add(...ids.map((id) => newJob(id)));
    await scene.claimer().take();
    await scene.advance(2 * leaseMs);
    const other = await scene.open();
    const answers = await Promise.all(
      [scene.store, other, scene.store, other].map((s) => s.reap({ limit: 20 })),
    );
    assert.deepEqual(answers.flatMap(({ reaped }) => reaped.map(({ id }) => id)).toSorted(), ids.toSorted());
    for (const job of await scene.store.get({ ids })) assert.equal(job?.crashes, 1);
  });
}

export function expireTests(test: ConformanceTest): void {
  test("a job not started in time is passed over, and the reaper records it as expired", async (scene) => {
    await scene.add(newJob("a", { expireInMs: 10 * minute }), newJob("b"));
    await scene.advance(hour);
    assert.deepEqual(await scene.claimer().ids(), ["b"]);
    assert.equal(await scene.stateOf("a"), "waiting");
    const { reaped } = await scene.store.reap({ limit: 10 });
    assert.deepEqual(
      reaped.map(({ id, state, reason }) => ({ id, state, reason })),
      [{ id: "a", state: "cancelled", reason: "expired" }],
    );
    assertAbout((await scene.job("a")).finishedAt, await scene.now(), "finishedAt");
  });

  test("the time counts from when it was due", async (scene) => {
    await scene.add(newJob("a", { delayMs: hour, expireInMs: hour }));
    await scene.advance(1.5 * hour);
    assert.deepEqual(await scene.reapAll(), []);
    assert.deepEqual(await scene.claimer().ids(), ["a"]);
  });

  test("a blocked job expires too", async (scene) => {
    await scene.add(newJob("p", { name: "other" }), newJob("c", { after: ["p"], expireInMs: minute }));
    await scene.advance(hour);
    assert.deepEqual(await scene.reapAll(), ["c"]);
    const claimer = scene.claimer();
    await claimer.finish(await claimer.one({ names: [named("other")] }), succeed);
    assert.deepEqual(await scene.states("p", "c"), ["succeeded", "cancelled"]);
  });

  test("what was started expires no more, also when it waits for its next try", async (scene) => {
    await scene.run(newJob("a", { expireInMs: 10 * minute }), { kind: "retry", delayMs: hour, error: "{}" });
    await scene.advance(2 * hour);
    assert.deepEqual(await scene.reapAll(), []);
    assert.deepEqual(await scene.claimer().ids(), ["a"]);
  });

  test("a claim that was given back counts as not started", async (scene) => {
    await scene.run(newJob("a", { expireInMs: 10 * minute }), { kind: "release" });
    await scene.advance(hour);
    assert.deepEqual(await scene.claimer().ids(), []);
    assert.deepEqual(await scene.reapAll(), ["a"]);
  });

  test("an update of its time moves the expiry by as much, and can save a job that expired", async (scene) => {
    await scene.add(newJob("a", { expireInMs: 10 * minute }));
    await scene.advance(hour);
    await scene.claimer().ids();
    await scene.store.update({ id: "a", delayMs: 0 });
    const job = await scene.job("a");
    assert.equal((job.expireAt?.getTime() ?? 0) - job.runAt.getTime(), 10 * minute);
    assert.deepEqual(await scene.reapAll(), []);
    assert.deepEqual(await scene.claimer("node-2").ids(), ["a"]);
  });
}
