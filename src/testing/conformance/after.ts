import assert from "node:assert/strict";
import type { NewJob } from "../../store/jobs.ts";
import { type ConformanceTest, die, hour, lose, minute, newJob, retry, succeed } from "./scene.ts";

const child = (id: string, after: string[], changes: Partial<NewJob> = {}): NewJob =>
  newJob(id, { after, name: "child", ...changes });
const names = [{ name: "child", concurrency: null, rate: null }];

export function afterTests(test: ConformanceTest): void {
  test("a job waits for its parents, also for those of the same call, and is claimed when each has succeeded", async (scene) => {
    const claimer = scene.claimer();
    await scene.add(newJob("p1"), newJob("p2"), child("c", ["p1", "p2", "p1"]));
    assert.equal(await scene.stateOf("c"), "blocked");
    assert.deepEqual((await scene.job("c")).waitsFor.toSorted(), ["p1", "p2"]);
    const [first, second] = await claimer.take();
    assert(first && second);
    assert.deepEqual(await claimer.ids({ names }), []);
    await claimer.finish(first, succeed);
    assert.deepEqual((await scene.job("c")).waitsFor, [second.id]);
    await claimer.finish(second, succeed);
    assert.deepEqual((await scene.job("c")).waitsFor, []);
    assert.deepEqual(await claimer.ids({ names }), ["c"]);
  });

  test("jobs that are alike but for their parents may share a call", async (scene) => {
    const tags = ["t"];
    await scene.add(newJob("a", { tags }), newJob("b", { tags, after: ["a"] }), newJob("c", { tags }));
    assert.deepEqual(await scene.states("a", "b", "c"), ["waiting", "blocked", "waiting"]);
  });

  test("a parent that is tried again keeps its children blocked", async (scene) => {
    await scene.run(newJob("p"), retry(minute));
    await scene.add(child("c", ["p"]));
    assert.equal(await scene.stateOf("c"), "blocked");
  });

  test("an unblocked job still waits for its own time", async (scene) => {
    await scene.add(newJob("p"), child("c", ["p"], { delayMs: hour }));
    const claimer = scene.claimer();
    await claimer.finish(await claimer.one(), succeed);
    assert.equal(await scene.stateOf("c"), "waiting");
    assert.deepEqual(await claimer.ids({ names }), []);
    await scene.advance(2 * hour);
    assert.deepEqual(await claimer.ids({ names }), ["c"]);
  });

  test("a parent that already succeeded is no hindrance", async (scene) => {
    await scene.run(newJob("p"), succeed);
    assert.deepEqual(await scene.add(child("c", ["p"])), [{ id: "c", outcome: "added" }]);
    assert.equal(await scene.stateOf("c"), "waiting");
  });

  test("a parent that already ended otherwise decides at once", async (scene) => {
    await scene.run(newJob("p"), die);
    await scene.add(child("stops", ["p"]), child("goes", ["p"], { afterFailure: "run" }));
    const stopped = await scene.job("stops");
    assert.deepEqual([stopped.state, stopped.reason], ["cancelled", "its parent p is dead"]);
    assert.notEqual(stopped.finishedAt, null);
    assert.equal(await scene.stateOf("goes"), "waiting");
  });

  test("an unknown parent refuses the job and those that wait for it, and nothing else of the batch", async (scene) => {
    const results = await scene.add(
      newJob("before"),
      child("c", ["before", "nobody"]),
      child("grandchild", ["c"]),
      child("self", ["self"]),
      child("early", ["late"]),
      newJob("late"),
    );
    assert.deepEqual(results, [
      { id: "before", outcome: "added" },
      { id: "c", outcome: "refused", parent: "nobody" },
      { id: "grandchild", outcome: "refused", parent: "c" },
      { id: "self", outcome: "refused", parent: "self" },
      { id: "early", outcome: "refused", parent: "late" },
      { id: "late", outcome: "added" },
    ]);
    assert.deepEqual(await scene.states("c", "grandchild", "self", "early"), [null, null, null, null]);
  });

  test("a refused id is not remembered: it can be enqueued properly", async (scene) => {
    await scene.add(child("c", ["nobody"]));
    assert.deepEqual(await scene.add(child("c", [])), [{ id: "c", outcome: "added" }]);
  });

  test("an alias as a parent means the job that stands for it", async (scene) => {
    const unique = { key: "k", forMs: null };
    await scene.add(newJob("a", { unique }), newJob("b", { unique }), child("c", ["b"]));
    assert.deepEqual((await scene.job("c")).waitsFor, ["a"]);
  });

  for (const outcome of [die, lose]) {
    test(`a parent that ends by ${outcome.kind} cancels its children and theirs, with the reason`, async (scene) => {
      await scene.add(newJob("p", { delivery: "at-most-once" }));
      await scene.add(
        child("c", ["p"]),
        child("g", ["c"]),
        child("goes", ["p"], { afterFailure: "run" }),
        child("follows", ["goes", "g"], { afterFailure: "run" }),
      );
      const claimer = scene.claimer();
      await claimer.finish(await claimer.one(), outcome);
      const ended = outcome.kind === "die" ? "dead" : "lost";
      const [c, g, goes, follows] = await scene.store.get({ ids: ["c", "g", "goes", "follows"] });
      assert.deepEqual([c?.state, c?.reason], ["cancelled", `its parent p is ${ended}`]);
      assert.deepEqual([g?.state, g?.reason, g?.waitsFor], ["cancelled", "its parent c is cancelled", []]);
      assert.equal(goes?.state, "waiting");
      assert.deepEqual([follows?.state, follows?.waitsFor], ["blocked", ["goes"]]);
    });
  }

  test("cancelling a waiting parent cascades", async (scene) => {
    await scene.add(newJob("p", { delayMs: hour }), child("c", ["p"]), child("g", ["c"]));
    assert.equal(await scene.cancel("p"), "cancelled");
    assert.deepEqual(await scene.states("p", "c", "g"), ["cancelled", "cancelled", "cancelled"]);
  });

  test("cancelling a blocked job cascades and leaves its parents alone", async (scene) => {
    await scene.add(newJob("p"), child("c", ["p"]), child("g", ["c"]));
    await scene.cancel("c", "not wanted");
    assert.deepEqual(await scene.states("p", "c", "g"), ["waiting", "cancelled", "cancelled"]);
    const claimer = scene.claimer();
    await claimer.finish(await claimer.one(), succeed);
    assert.equal((await scene.job("c")).reason, "not wanted");
  });

  test("a parent that expires cancels its children", async (scene) => {
    await scene.add(newJob("p", { expireInMs: minute }), child("c", ["p"]));
    await scene.advance(hour);
    await scene.reapAll();
    assert.equal((await scene.job("c")).reason, "its parent p is cancelled");
  });

  test("a redriven parent does not bring back children that were cancelled with it", async (scene) => {
    await scene.add(newJob("p"), child("c", ["p"]));
    const claimer = scene.claimer();
    await claimer.finish(await claimer.one(), die);
    await scene.redrive("p");
    await claimer.finish(await claimer.one(), succeed);
    assert.equal(await scene.stateOf("c"), "cancelled");
  });

  test("a chain of a thousand is cancelled in one go", async (scene) => {
    const chain = Array.from({ length: 1_000 }, (_, n) => child(`c${n}`, n === 0 ? [] : [`c${n - 1}`]));
    await scene.store.enqueue({ jobs: chain });
    await scene.cancel("c0");
    const rows = await scene.store.count({ filter: {}, by: ["state"] });
    assert.deepEqual(rows, [{ state: "cancelled", count: 1_000 }]);
  });
}
