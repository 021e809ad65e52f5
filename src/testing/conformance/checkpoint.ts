import assert from "node:assert/strict";
import { acquire, checkpoint, leaseMs, own, relayed } from "./partition-scene.ts";
import { assertAbout, type ConformanceTest, hour, later, minute, newJob, succeed } from "./scene.ts";

export function checkpointTests(test: ConformanceTest): void {
  test("a checkpoint names jobs: they are active under its owner, and their token has risen", async (scene) => {
    const { epoch } = await own(scene, "a");
    await scene.add(relayed("x"), relayed("y"));
    const { outcome, named } = await checkpoint(scene, "a", epoch, { name: ["y", "x"] });
    assert.equal(outcome, "written");
    assert.deepEqual(
      named.map(({ id, token, attempt }) => ({ id, token, attempt })),
      [
        { id: "y", token: 1, attempt: 1 },
        { id: "x", token: 1, attempt: 1 },
      ],
    );
    const job = await scene.job("x");
    assert.deepEqual([job.state, job.claimer], ["active", "a"]);
    assertAbout(job.claimedAt, await scene.now(), "claimedAt");
  });

  test("what is no longer waiting, due, unexpired, of this version and in this partition is left out", async (scene) => {
    const { epoch } = await own(scene, "a");
    const now = await scene.now();
    await scene.add(
      relayed("good"),
      relayed("later", { delayMs: hour }),
      relayed("edited"),
      relayed("cancelled"),
      relayed("expired", { runAt: later(now, -hour), expireInMs: minute }),
      newJob("not relayed"),
    );
    await scene.store.update({ id: "edited", input: "2" });
    await scene.cancel("cancelled");
    const name = ["later", "edited", "cancelled", "expired", "not relayed", "nobody", "good"];
    const { named } = await checkpoint(scene, "a", epoch, { name });
    assert.deepEqual(
      named.map(({ id }) => id),
      ["good"],
    );
    // And so it is where there is more to write than successes.
    const beside = await scene.store.checkpoint({
      owner: "a",
      partition: 0,
      epoch,
      settled: [{ id: "good", token: 1, outcome: { kind: "rollback", delayMs: hour, error: '"full"' } }],
      mark: null,
      name: name.map((id) => ({ id, version: 1 })),
      aheadMs: 0,
    });
    assert.deepEqual([beside.finished[0]?.state, beside.named], ["waiting", []]);
    const left = await scene.states("later", "edited", "cancelled", "expired", "not relayed");
    assert.deepEqual(left, ["waiting", "waiting", "cancelled", "waiting", "waiting"]);
    const edited = await checkpoint(scene, "a", epoch, { name: ["edited"], version: 2 });
    assert.deepEqual(
      edited.named.map(({ id, token }) => [id, token]),
      [["edited", 1]],
    );
  });

  test("a job may be named ahead of its time, and whoever takes over is told when that is", async (scene) => {
    const { epoch } = await own(scene, "a");
    await scene.add(relayed("soon", { delayMs: minute }), relayed("later", { delayMs: hour }));
    const { runAt } = await scene.job("soon");
    const name = ["soon", "later"];
    const { named } = await checkpoint(scene, "a", epoch, { name, aheadMs: 2 * minute });
    assert.deepEqual(
      named.map((job) => [job.id, job.token, job.runAt]),
      [["soon", 1, runAt]],
    );
    const again = await checkpoint(scene, "a", epoch, { name, aheadMs: 0 });
    assert.deepEqual(again.named, named, "what was named stays named");
    await scene.store.releasePartitions({ owner: "a", held: [{ partition: 0, epoch }] });
    const grant = await own(scene, "b");
    assert.deepEqual(
      grant.named.map((job) => [job.id, job.token, job.runAt]),
      [["soon", 2, runAt]],
    );
    const release = { id: "soon", token: 2, outcome: { kind: "release" } } as const;
    await scene.store.checkpoint({
      ...{ owner: "b", partition: 0, epoch: grant.epoch, settled: [release] },
      ...{ mark: null, name: [], aheadMs: 0 },
    });
    const job = await scene.job("soon");
    assert.deepEqual([job.state, job.runAt, job.attempt], ["waiting", runAt, 0]);
  });

  test("settling ends the named, moves the mark and names the next, and a repeat does it once", async (scene) => {
    const { epoch } = await own(scene, "a");
    await scene.add(relayed("x"), relayed("y"));
    await checkpoint(scene, "a", epoch, { name: ["x"] });
    const mark = later(await scene.now(), -minute);
    const changes = { settled: [{ id: "x", token: 1 }], name: ["y"], mark };
    const first = await checkpoint(scene, "a", epoch, changes);
    assert.deepEqual(first.finished, [{ outcome: "written", state: "succeeded" }]);
    const again = await checkpoint(scene, "a", epoch, changes);
    assert.deepEqual(again.finished, [{ outcome: "repeated", state: "succeeded" }]);
    assert.deepEqual(again.named, first.named, "a lost reply strands no named job");
    await checkpoint(scene, "a", epoch);
    await scene.store.releasePartitions({ owner: "a", held: [{ partition: 0, epoch }] });
    assert.deepEqual((await own(scene, "b")).mark, mark);
  });

  test("a handle that remembers what it named finds out that it was settled since", async (scene) => {
    const { epoch } = await own(scene, "a");
    await scene.add(relayed("x"), relayed("y"), relayed("z"));
    await checkpoint(scene, "a", epoch, { name: ["x", "y"] });
    const other = { store: await scene.open() };
    const changes = { settled: [{ id: "x", token: 1 }], name: ["z"] };
    // As if it were the handle's own, whose reply was lost.
    const { named } = await checkpoint(other, "a", epoch, changes);
    const settled = [...changes.settled, { id: "y", token: 1 }];
    const again = await checkpoint(scene, "a", epoch, { ...changes, settled });
    assert.deepEqual(again.finished, [
      { outcome: "repeated", state: "succeeded" },
      { outcome: "written", state: "succeeded" },
    ]);
    assert.deepEqual(again.named, named);
  });

  test("a stale epoch is refused: nothing is settled, marked or named", async (scene) => {
    const { epoch } = await own(scene, "a");
    await scene.add(relayed("x"), relayed("y"));
    await checkpoint(scene, "a", epoch, { name: ["x"] });
    await scene.advance(hour);
    const taken = await own(scene, "b");
    const settled = [{ id: "x", token: 1 }];
    const stale = await checkpoint(scene, "a", epoch, { settled, name: ["y"], mark: new Date(0) });
    assert.deepEqual(stale, { outcome: "stale", finished: [], named: [] });
    assert.equal((await checkpoint(scene, "a", taken.epoch, { settled })).outcome, "stale");
    assert.deepEqual(await scene.states("x", "y"), ["active", "waiting"]);
  });

  test("an owner's own earlier epoch is as stale as anybody's, once it has taken the partition again", async (scene) => {
    const { epoch } = await own(scene, "a");
    await scene.add(relayed("x"), relayed("y"));
    await checkpoint(scene, "a", epoch, { name: ["x"] });
    await scene.advance(hour);
    const again = await own(scene, "a");
    assert.deepEqual(
      again.named.map(({ id, token }) => [id, token]),
      [["x", 2]],
    );
    for (const token of [1, 2]) {
      const late = await checkpoint(scene, "a", epoch, { settled: [{ id: "x", token }], name: ["y"] });
      assert.deepEqual(late, { outcome: "stale", finished: [], named: [] });
    }
    const ahead = await checkpoint(scene, "a", again.epoch + 1, { name: ["y"] });
    assert.equal(ahead.outcome, "stale", "an epoch that was never granted");
    assert.deepEqual(await scene.states("x", "y"), ["active", "waiting"]);
    const held = [{ partition: 0, epoch }];
    assert.deepEqual(await scene.store.renewPartitions({ owner: "a", leaseMs, held }), ["stale"]);
    await scene.store.releasePartitions({ owner: "a", held });
    assert.deepEqual(await acquire(scene, "b"), [], "it is held under the new epoch");
    const settled = [{ id: "x", token: 2 }];
    const { finished } = await checkpoint(scene, "a", again.epoch, { settled });
    assert.deepEqual(finished, [{ outcome: "written", state: "succeeded" }]);
  });

  test("what is in another partition is neither settled nor named, also where the owner is the same", async (scene) => {
    const grants = await acquire(scene, "a", 2, 2);
    assert.equal(grants.length, 2);
    await scene.add(relayed("here"), relayed("there", { slot: 600 }), relayed("also there", { slot: 601 }));
    await checkpoint(scene, "a", 1, { partition: 1, name: ["there"] });
    const settled = [{ id: "there", token: 1 }];
    const { finished, named } = await checkpoint(scene, "a", 1, { settled, name: ["also there", "here"] });
    assert.deepEqual(finished, [{ outcome: "stale", state: "active" }]);
    assert.deepEqual(
      named.map(({ id }) => id),
      ["here"],
    );
    const right = await checkpoint(scene, "a", 1, { partition: 1, settled });
    assert.deepEqual(right.finished, [{ outcome: "written", state: "succeeded" }]);
  });

  test("a new owner is given what the last one had named: token raised, attempt and crashes not", async (scene) => {
    const { epoch } = await own(scene, "a");
    await scene.add(relayed("x"), relayed("unnamed"));
    await checkpoint(scene, "a", epoch, { name: ["x"] });
    await scene.advance(hour);
    const grant = await own(scene, "b");
    assert.deepEqual(
      grant.named.map(({ id, token, attempt, crashes }) => ({ id, token, attempt, crashes })),
      [{ id: "x", token: 2, attempt: 1, crashes: 0 }],
    );
    assert.equal((await scene.job("x")).claimer, "b");
    const late = await checkpoint(scene, "b", grant.epoch, { settled: [{ id: "x", token: 1 }] });
    assert.deepEqual(late.finished, [{ outcome: "stale", state: "active" }]);
    const good = await checkpoint(scene, "b", grant.epoch, { settled: [{ id: "x", token: 2 }] });
    assert.deepEqual(good.finished, [{ outcome: "written", state: "succeeded" }]);
  });

  test("named jobs have no lease of their own, and only a checkpoint ends them", async (scene) => {
    const { epoch } = await own(scene, "a");
    await scene.add(relayed("x"));
    await checkpoint(scene, "a", epoch, { name: ["x"] });
    await scene.advance(24 * hour);
    assert.deepEqual(await scene.reapAll(), []);
    const claimer = scene.claimer("a");
    assert.equal((await claimer.finish({ id: "x", token: 1 }, succeed)).outcome, "stale");
    assert.equal((await claimer.extend({ id: "x", token: 1 })).outcome, "stale");
    const { finished } = await checkpoint(scene, "a", epoch, { settled: [{ id: "x", token: 1 }] });
    assert.equal(finished[0]?.outcome, "written", "its lease ran out, but nobody took the partition");
  });

  test("a refused publish rolls back to waiting, counted apart from attempts; a cancel then wins", async (scene) => {
    const { epoch } = await own(scene, "a");
    await scene.add(relayed("x"), relayed("y"));
    await checkpoint(scene, "a", epoch, { name: ["x", "y"] });
    assert.equal(await scene.cancel("y"), "requested");
    assert.equal((await scene.store.update({ id: "x", input: "2" })).outcome, "refused");
    const outcome = { kind: "rollback", delayMs: 0, error: '"full"' } as const;
    const { finished, named } = await scene.store.checkpoint({
      owner: "a",
      partition: 0,
      epoch,
      settled: ["x", "y"].map((id) => ({ id, token: 1, outcome })),
      mark: null,
      name: [{ id: "x", version: 1 }],
      aheadMs: 0,
    });
    assert.deepEqual(
      finished.map(({ state }) => state),
      ["waiting", "cancelled"],
    );
    assert.deepEqual(
      named.map(({ id, token, attempt }) => ({ id, token, attempt })),
      [{ id: "x", token: 2, attempt: 1 }],
    );
    assert.equal((await scene.job("x")).rollbacks, 1);
  });

  test("relayed jobs count for no limit of a queue or key", async (scene) => {
    await scene.store.configureQueue({ queue: "default", concurrency: 1 });
    const { epoch } = await own(scene, "a");
    await scene.add(relayed("x", { concurrencyKey: "k" }), newJob("plain", { concurrencyKey: "k" }));
    assert.equal((await checkpoint(scene, "a", epoch, { name: ["x"] })).named.length, 1);
    const names = [{ name: "work", concurrency: 1, rate: null }];
    assert.deepEqual(await scene.claimer().ids({ names }), ["plain"]);
  });
}
