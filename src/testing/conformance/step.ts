import assert from "node:assert/strict";
import { leaseMs, named } from "./claimer.ts";
import { type ConformanceTest, hour, newJob, retry, succeed } from "./scene.ts";

export function stepTests(test: ConformanceTest): void {
  test("finishing a batch and claiming the next is one trip, and what it freed is claimed in it [C1]", async (scene) => {
    const names = [named("work", { concurrency: 1 })];
    await scene.add(newJob("a", { concurrencyKey: "k" }), newJob("b", { concurrencyKey: "k" }));
    const claimer = scene.claimer();
    const { id, token } = await claimer.one({ names });
    const answer = await scene.store.step({
      finishes: [{ id, token, outcome: succeed }],
      claim: claimer.next({ names }),
    });
    assert.deepEqual(answer.finished, [{ outcome: "written", state: "succeeded" }]);
    assert.deepEqual(
      answer.claimed.jobs.map((job) => job.id),
      ["b"],
    );
  });

  test("a step repeated after a lost reply finishes once and claims once", async (scene) => {
    await scene.add(newJob("a"), newJob("b"), newJob("c"));
    const claimer = scene.claimer();
    const { id, token } = await claimer.one({ limit: 1 });
    const params = { finishes: [{ id, token, outcome: retry(hour) }], claim: claimer.next({ limit: 1 }) };
    const first = await scene.store.step(params);
    const again = await scene.store.step(params);
    assert.deepEqual(again.finished, [{ outcome: "repeated", state: "waiting" }]);
    assert.deepEqual(again.claimed.jobs, first.claimed.jobs);
    assert.equal(await scene.stateOf("c"), "waiting");
    assert.equal((await scene.trail("a")).length, 1);
  });

  test("a step with a stale sequence still writes its finishes", async (scene) => {
    await scene.add(newJob("a"), newJob("b"));
    const claimer = scene.claimer();
    const early = claimer.next();
    const { id, token } = await claimer.one({ limit: 1 });
    const answer = await scene.store.step({ finishes: [{ id, token, outcome: succeed }], claim: early });
    assert.equal(answer.finished[0]?.outcome, "written");
    assert.deepEqual([answer.claimed.outcome, answer.claimed.jobs], ["stale", []]);
    assert.equal(await scene.stateOf("b"), "waiting");
  });

  test("a step with nothing to finish is a claim", async (scene) => {
    await scene.add(newJob("a"));
    const answer = await scene.store.step({ finishes: [], claim: scene.claimer().next() });
    assert.deepEqual(answer.finished, []);
    assert.equal(answer.claimed.jobs.length, 1);
  });

  test("answers stand in the order of what was asked, good and stale mixed", async (scene) => {
    await scene.add(newJob("a"), newJob("b"));
    const claimer = scene.claimer();
    await claimer.take();
    const finishes = [
      { id: "nobody", token: 1, outcome: succeed },
      { id: "b", token: 1, outcome: succeed },
      { id: "a", token: 7, outcome: succeed },
      { id: "a", token: 1, outcome: retry(hour) },
    ];
    const { finished } = await scene.store.step({ finishes, claim: claimer.next() });
    assert.deepEqual(finished, [
      { outcome: "stale", state: null },
      { outcome: "written", state: "succeeded" },
      { outcome: "stale", state: "active" },
      { outcome: "written", state: "waiting" },
    ]);
  });
}

export function extendTests(test: ConformanceTest): void {
  test("a claim that is renewed is never reaped, however slow its handler [C2, A7]", async (scene) => {
    await scene.add(newJob("a"));
    const claimer = scene.claimer();
    const claimed = await claimer.one();
    for (let beat = 0; beat < 5; beat += 1) {
      await scene.advance(leaseMs / 2);
      assert.deepEqual(await claimer.extend(claimed), { outcome: "extended", cancelRequested: false });
      assert.deepEqual(await scene.reapAll(), []);
    }
    assert.equal((await claimer.finish(claimed, succeed)).outcome, "written");
  });

  test("a claim is reaped a lease after its last renewal, not after its claim [C2]", async (scene) => {
    await scene.add(newJob("a"));
    const claimer = scene.claimer();
    const claimed = await claimer.one();
    await claimer.extend(claimed, hour);
    await scene.advance(10 * leaseMs);
    assert.deepEqual(await scene.reapAll(), []);
    await scene.advance(hour);
    assert.deepEqual(await scene.reapAll(), ["a"]);
  });

  test("renewing tells of a cancel", async (scene) => {
    await scene.add(newJob("a"));
    const claimer = scene.claimer();
    const claimed = await claimer.one();
    await scene.cancel("a");
    assert.deepEqual(await claimer.extend(claimed), { outcome: "extended", cancelRequested: true });
  });

  test("renewing a claim that ended, was reaped, is another's or never was is stale", async (scene) => {
    const stale = { outcome: "stale", cancelRequested: false };
    await scene.add(newJob("done"), newJob("silent"));
    const claimer = scene.claimer();
    const [done, silent] = await claimer.take();
    assert(done && silent);
    assert.deepEqual(await scene.claimer("thief").extend(silent), stale);
    assert.deepEqual(await claimer.extend({ id: "silent", token: 9 }), stale);
    assert.deepEqual(await claimer.extend({ id: "nobody", token: 1 }), stale);
    await claimer.finish(done, succeed);
    assert.deepEqual(await claimer.extend(done), stale);
    await scene.advance(2 * leaseMs);
    await scene.reapAll();
    assert.deepEqual(await claimer.extend(silent), stale);
    await scene.claimer("next").one();
    assert.deepEqual(await claimer.extend(silent), stale);
  });

  test("leases are per job: one of a batch may run out while another is renewed", async (scene) => {
    await scene.add(newJob("kept"), newJob("dropped"));
    const claimer = scene.claimer();
    const [kept] = await claimer.take();
    assert(kept);
    await scene.advance(leaseMs / 2);
    await claimer.extend(kept);
    await scene.advance(0.75 * leaseMs);
    assert.deepEqual(await scene.reapAll(), ["dropped"]);
  });
}
