import assert from "node:assert/strict";
import { type ConformanceTest, newJob, type Scene, succeed } from "./scene.ts";

const whole = (scene: Scene, ...jobs: Parameters<Scene["add"]>) =>
  scene.store.enqueue({ jobs, allOrNone: true });

export function allOrNoneTests(test: ConformanceTest): void {
  test("an unknown parent in the middle keeps the whole batch out", async (scene) => {
    const jobs = [
      newJob("{t}a"),
      newJob("{t}b", { after: ["{t}a"] }),
      newJob("{t}c", { after: ["{t}a", "{t}nobody"] }),
      newJob("{t}d"),
    ];
    assert.deepEqual(await whole(scene, ...jobs), [
      { id: "{t}a", outcome: "refused" },
      { id: "{t}b", outcome: "refused" },
      { id: "{t}c", outcome: "refused", parent: "{t}nobody" },
      { id: "{t}d", outcome: "refused" },
    ]);
    assert.deepEqual(await scene.store.count({ filter: {}, by: [] }), [{ count: 0 }]);
    assert.deepEqual(await scene.claimer().ids(), []);
    const outcomes = await whole(scene, newJob("{t}nobody"), ...jobs);
    assert.deepEqual([...new Set(outcomes.map(({ outcome }) => outcome))], ["added"]);
  });

  test("a job that is there already asks for no parents, and what is known counts as one", async (scene) => {
    await scene.run(newJob("{t}done"), succeed);
    await scene.add(newJob("{t}here"));
    const results = await whole(
      scene,
      newJob("{t}here", { after: ["{t}nobody"] }),
      newJob("{t}a", { after: ["{t}done", "{t}here"] }),
      newJob("{t}a", { after: ["{t}nobody"] }),
    );
    assert.deepEqual(
      results.map(({ outcome }) => outcome),
      ["existing", "added", "existing"],
    );
    assert.deepEqual(await scene.states("{t}here", "{t}a"), ["waiting", "blocked"]);
  });

  test("a refused batch changes no job that it would have", async (scene) => {
    const unique = { key: "u", forMs: null };
    const debounce = { key: "d", waitMs: 60_000, maxMs: null };
    await scene.add(newJob("{t}u", { unique }), newJob("{t}d", { debounce, input: '"first"' }));
    const before = await scene.job("{t}d");
    const results = await whole(
      scene,
      newJob("{t}x", { unique }),
      newJob("{t}y", { debounce, input: '"second"' }),
      newJob("{t}z", { after: ["{t}nobody"] }),
    );
    assert.deepEqual(
      results.map(({ outcome }) => outcome),
      ["refused", "refused", "refused"],
    );
    assert.deepEqual(await scene.job("{t}d"), before);
    assert.deepEqual(await scene.store.get({ ids: ["{t}x", "{t}y", "{t}z"] }), [null, null, null]);
  });
}
