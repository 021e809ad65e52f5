import assert from "node:assert/strict";
import type { Selection } from "../../store/jobs.ts";
import { type ConformanceTest, die, hour, lose, newJob, type Scene, succeed } from "./scene.ts";
import { fire, firing, ledger, planned, put, rule } from "./schedule-scene.ts";

async function remove(scene: Scene, select: Selection): Promise<string[]> {
  const { results } = await scene.store.remove({ select, reason: null });
  return results.map(({ id, outcome }) => `${id} ${outcome}`);
}

const all = (changes = {}): Selection => ({ filter: { ...changes }, limit: 100, cursor: null });

export function removeTests(test: ConformanceTest): void {
  test("ended jobs are forgotten, others refused, and what is not there is unknown", async (scene) => {
    await scene.run(newJob("done"), { kind: "succeed", result: '"secret"' });
    await scene.run(newJob("dead"), die);
    await scene.run(newJob("lost", { delivery: "at-most-once" }), lose);
    await scene.add(newJob("gone"), newJob("active"));
    await scene.cancel("gone");
    await scene.claimer().one();
    await scene.add(newJob("waits"), newJob("blocked", { after: ["waits"] }));
    const ended = ["done", "gone", "dead", "lost"];
    const open = ["waits", "blocked", "active"];
    const outcomes = await remove(scene, { ids: [...ended, ...open, "nobody", "done"] });
    assert.deepEqual(outcomes, [
      ...ended.map((id) => `${id} deleted`),
      ...open.map((id) => `${id} refused`),
      "nobody unknown",
      "done unknown",
    ]);
    assert.deepEqual(await scene.states(...ended), [null, null, null, null]);
    assert.deepEqual(await scene.states(...open), ["waiting", "blocked", "active"]);
    assert.deepEqual(await scene.store.count({ filter: {}, by: [] }), [{ count: 3 }]);
    assert.deepEqual(await scene.trail("dead"), []);
    assert.deepEqual((await scene.store.prune(everything)).pruned, 0);
  });

  test("a filter takes only what has ended, oldest first and page by page", async (scene) => {
    for (const id of ["a", "b", "c"]) await scene.run(newJob(id, { tags: ["t"] }), succeed);
    await scene.run(newJob("other"), succeed);
    await scene.add(newJob("open", { tags: ["t"] }));
    const filter = { tags: ["t"] };
    const first = await scene.store.remove({ select: { filter, limit: 2, cursor: null }, reason: null });
    const second = await scene.store.remove({
      select: { filter, limit: 2, cursor: first.cursor },
      reason: null,
    });
    const ids = [...first.results, ...second.results].map(({ id, outcome }) => `${id} ${outcome}`);
    assert.deepEqual(ids.toSorted(), ["a deleted", "b deleted", "c deleted"]);
    assert.deepEqual([first.results.length, second.cursor], [2, null]);
    assert.deepEqual(await scene.states("other", "open"), ["succeeded", "waiting"]);
    assert.deepEqual(await remove(scene, all({ states: ["waiting"] })), []);
  });

  test("a deleted id is a new one: it is added, with no past", async (scene) => {
    const unique = { key: "k", forMs: null };
    const debounce = { key: "d", waitMs: 0, maxMs: null };
    await scene.add(newJob("a", { unique }), newJob("alias", { unique }));
    const claimer = scene.claimer();
    const claimed = await claimer.one();
    await claimer.finish(claimed, die);
    assert.deepEqual(await remove(scene, { ids: ["alias", "a"] }), ["alias deleted", "a unknown"]);
    assert.deepEqual(await claimer.finish(claimed, die), { outcome: "stale", state: null });
    const again = await scene.add(
      newJob("alias", { unique }),
      newJob("a", { debounce }),
      newJob("b", { unique }),
    );
    assert.deepEqual(
      again.map(({ id, outcome }) => `${id} ${outcome}`),
      ["alias added", "a added", "alias absorbed"],
    );
    const { token, version, attempt } = await scene.job("a");
    assert.deepEqual([token, version, attempt, await scene.trail("a")], [0, 1, 0, []]);
    assert.equal((await scene.add(newJob("c", { debounce })))[0]?.outcome, "debounced");
  });

  test("a job that holds its unique key for a time stays until it does not", async (scene) => {
    const unique = { key: "k", forMs: 10 * hour };
    await scene.run(newJob("a", { unique }), succeed);
    assert.deepEqual(await remove(scene, { ids: ["a"] }), ["a held"]);
    assert.deepEqual(await remove(scene, all()), ["a held"]);
    assert.deepEqual((await scene.add(newJob("b", { unique })))[0], { id: "a", outcome: "absorbed" });
    // Looked at by prune as well, which may put it aside.
    await scene.store.prune(everything);
    await scene.advance(11 * hour);
    assert.deepEqual(await remove(scene, { ids: ["a"] }), ["a deleted"]);
    assert.deepEqual((await scene.add(newJob("c", { unique })))[0], { id: "c", outcome: "added" });
  });

  test("a deleted parent is an unknown one, and the ledger keeps its rows", async (scene) => {
    const now = await scene.now();
    const schedule = await put(scene.store, rule("s", now));
    await fire(scene.store, firing(schedule, now, { occurrences: [planned("s", now)], advanceTo: null }));
    const rows = await ledger(scene, "s");
    const id = rows[0]?.jobId ?? "";
    await scene.add(newJob("c", { after: [id], delayMs: 99 * hour }));
    const claimer = scene.claimer();
    await claimer.finish(await claimer.one(), succeed);
    assert.deepEqual(await remove(scene, { ids: [id] }), [`${id} deleted`]);
    assert.equal(await scene.stateOf("c"), "waiting");
    assert.equal((await scene.add(newJob("late", { after: [id] })))[0]?.outcome, "refused");
    assert.deepEqual(await ledger(scene, "s"), rows);
  });
}

const everything = {
  succeededMs: 0,
  cancelledMs: 0,
  deadMs: 0,
  lostMs: 0,
  nodesMs: 0,
  occurrencesMs: 1_000 * hour,
  limit: 1_000,
};
