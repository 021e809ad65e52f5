import assert from "node:assert/strict";
import { type JobFilter, maxTrailLength } from "../../store/questions.ts";
import type { Store } from "../../store/store.ts";
import { leaseMs } from "./claimer.ts";
import { type ConformanceTest, die, hour, later, minute, newJob, type Scene, succeed } from "./scene.ts";

async function found(store: Store, filter: JobFilter): Promise<string[]> {
  const { jobs } = await store.list({ filter, limit: 1_000, order: "oldest", cursor: null });
  return jobs.map(({ id }) => id);
}

async function addMany(scene: Scene): Promise<void> {
  await scene.add(
    newJob("a", { tags: ["x", "y"], queue: "q1" }),
    newJob("b", { tags: ["x"], queue: "q2", delivery: "at-most-once" }),
    newJob("c", { name: "other", delayMs: 5 * hour }),
    newJob("d", { schedule: "nightly", delivery: "effectively-once" }),
  );
}

export function listTests(test: ConformanceTest): void {
  test("get answers in the order of the ids, null for unknown ones, and repeats repeats", async (scene) => {
    await scene.add(newJob("a"), newJob("b"));
    const jobs = await scene.store.get({ ids: ["b", "nobody", "a", "b"] });
    assert.deepEqual(
      jobs.map((job) => job?.id ?? null),
      ["b", null, "a", "b"],
    );
    assert.deepEqual(await scene.store.get({ ids: [] }), []);
  });

  test("every term of a filter narrows, the values inside one widen, and all tags must be there", async (scene) => {
    await addMany(scene);
    const now = await scene.now();
    const cases: [JobFilter, string[]][] = [
      [{}, ["a", "b", "c", "d"]],
      [{ ids: ["c", "a", "nobody"] }, ["a", "c"]],
      [{ queues: ["q1", "q2"] }, ["a", "b"]],
      [{ names: ["other"] }, ["c"]],
      [{ deliveries: ["at-most-once", "effectively-once"] }, ["b", "d"]],
      [{ tags: ["x"] }, ["a", "b"]],
      [{ tags: ["y", "x"] }, ["a"]],
      [{ tags: [] }, ["a", "b", "c", "d"]],
      [{ schedule: "nightly" }, ["d"]],
      [{ states: ["active"] }, []],
      [{ states: [] }, []],
      [{ ids: [] }, []],
      [{ states: ["waiting", "dead"], queues: ["default"] }, ["c", "d"]],
      [{ runAfter: later(now, hour) }, ["c"]],
      [{ runBefore: later(now, hour) }, ["a", "b", "d"]],
      [
        { enqueuedAfter: later(now, -hour), enqueuedBefore: later(now, hour), names: ["work"] },
        ["a", "b", "d"],
      ],
      [{ enqueuedBefore: later(now, -hour) }, []],
    ];
    for (const [filter, expected] of cases) {
      assert.deepEqual(await found(scene.store, filter), expected, JSON.stringify(filter));
    }
  });

  test("bounds of time: after is inclusive, before exclusive", async (scene) => {
    const runAt = later(await scene.now(), hour);
    await scene.add(newJob("a", { runAt }));
    assert.deepEqual(await found(scene.store, { runAfter: runAt }), ["a"]);
    assert.deepEqual(await found(scene.store, { runBefore: runAt }), []);
    assert.deepEqual(await found(scene.store, { runAfter: runAt, runBefore: later(runAt, 1_000) }), ["a"]);
  });

  for (const order of ["newest", "oldest"] as const) {
    test(`pages in the order of enqueueing, ${order} first, show every job once while others come and end`, async (scene) => {
      const ids = Array.from({ length: 25 }, (_, n) => `j${n}`);
      await scene.add(...ids.slice(0, 10).map((id) => newJob(id)));
      await scene.add(...ids.slice(10).map((id) => newJob(id, { delayMs: hour })));
      const seen: string[] = [];
      let cursor: string | null = null;
      do {
        const page = await scene.store.list({ filter: {}, limit: 4, order, cursor });
        seen.push(...page.jobs.map(({ id }) => id));
        assert(page.jobs.length <= 4);
        cursor = page.cursor;
        if (seen.length === 8) {
          await scene.add(newJob("newcomer"));
          const claimer = scene.claimer();
          for (const claimed of await claimer.take()) await claimer.finish(claimed, succeed);
        }
      } while (cursor !== null);
      const expected = order === "newest" ? ids.toReversed() : [...ids, "newcomer"];
      assert.deepEqual(seen, expected);
    });
  }

  test("a cursor that this question did not return is refused, and changes nothing", async (scene) => {
    const other = await scene.openOther();
    const jobs = ["a", "b", "c"].map((id) => newJob(id));
    await scene.add(...jobs);
    await other.enqueue({ jobs });
    const list = (cursor: string | null, order: "newest" | "oldest" = "oldest", store = scene.store) =>
      store.list({ filter: {}, limit: 1, order, cursor });
    const real = (await list(null)).cursor ?? "";
    const select = (cursor: string | null) => ({ select: { filter: {}, limit: 1, cursor }, reason: null });
    const ofChange = (await other.cancel(select(null))).cursor ?? "";
    const forged = [
      "",
      "0",
      "1",
      "abc",
      "-1",
      "1e999",
      "[]",
      "[0]",
      "{}",
      "0:0",
      "null",
      "~",
      `${real} `,
      `0${real}`,
    ].concat(real.slice(1), real.slice(0, -1), `${real}~`, `1.${real}`, "9".repeat(100_000), "'; --", "\0");
    const wrong = [
      ...forged,
      (await list(null, "newest")).cursor ?? "",
      (await list(null, "oldest", other)).cursor ?? "",
    ];
    const refused = { name: "EscapementError", code: "invalid-cursor" };
    for (const cursor of [...wrong, ofChange])
      await assert.rejects(list(cursor), refused, cursor.slice(0, 50));
    for (const cursor of [...wrong, real, ofChange]) {
      await assert.rejects(scene.store.cancel(select(cursor)), refused);
      await assert.rejects(scene.store.redrive(select(cursor)), refused);
    }
    assert.deepEqual(await scene.store.count({ filter: {}, by: ["state"] }), [
      { state: "waiting", count: 3 },
    ]);
    assert.deepEqual(
      (await list(real)).jobs.map(({ id }) => id),
      ["b"],
    );
  });

  test("counts are exact, by state, queue and name, alone and together", async (scene) => {
    await addMany(scene);
    await scene.cancel("b");
    const count = (filter: JobFilter, ...by: ("state" | "queue" | "name")[]) =>
      scene.store.count({ filter, by });
    assert.deepEqual(await count({}), [{ count: 4 }]);
    assert.deepEqual(await count({ names: ["nobody"] }), [{ count: 0 }]);
    assert.deepEqual(await count({ names: ["nobody"] }, "state"), []);
    const byState = await count({}, "state");
    assert.deepEqual(
      byState.toSorted((a, b) => a.count - b.count),
      [
        { state: "cancelled", count: 1 },
        { state: "waiting", count: 3 },
      ],
    );
    assert.deepEqual(await count({ names: ["other"] }, "name", "queue", "state"), [
      { name: "other", queue: "default", state: "waiting", count: 1 },
    ]);
  });

  test("finished jobs are found like all others", async (scene) => {
    await scene.run(newJob("done", { tags: ["t"] }), succeed);
    await scene.run(newJob("dead"), die);
    assert.deepEqual(await found(scene.store, { states: ["succeeded", "dead"] }), ["done", "dead"]);
    assert.deepEqual(await found(scene.store, { tags: ["t"] }), ["done"]);
  });
}

export function trailTests(test: ConformanceTest): void {
  test("reports of a holder are kept: progress and log lines in their order", async (scene) => {
    await scene.add(newJob("a"));
    const claimer = scene.claimer();
    const { id, token } = await claimer.one();
    const report = (progress: string | undefined, ...lines: string[]) =>
      scene.store.report({
        claimer: claimer.id,
        reports: [{ id, token, lines, ...(progress === undefined ? {} : { progress }) }],
      });
    await report('{"done":1}', "one", "two");
    await report(undefined, "three 🕰️");
    assert.equal((await scene.job("a")).progress, '{"done":1}');
    const trail = await scene.trail("a");
    assert.deepEqual(
      trail.map(({ kind, text, attempt, claimer: by }) => [kind, text, attempt, by]),
      ["one", "two", "three 🕰️"].map((text) => ["log", text, 1, "node-1"]),
    );
    await claimer.finish({ id, token }, succeed);
    assert.deepEqual(await scene.trail("a"), trail, "the trail stays when the job has ended");
    assert.equal((await scene.job("a")).progress, '{"done":1}');
  });

  test("reports of stale claims are dropped, and the good ones of the batch kept", async (scene) => {
    await scene.add(newJob("a"), newJob("b"));
    const claimer = scene.claimer();
    const [a, b] = await claimer.take();
    assert(a && b);
    await claimer.finish(a, { kind: "release" });
    const reports = ["a", "b", "nobody"].map((id) => ({ id, token: 1, progress: "1", lines: ["line"] }));
    await scene.store.report({ claimer: "thief", reports });
    await scene.store.report({ claimer: claimer.id, reports });
    assert.deepEqual([(await scene.job("a")).progress, (await scene.job("b")).progress], [null, "1"]);
    assert.deepEqual([(await scene.trail("a")).length, (await scene.trail("b")).length], [0, 1]);
    assert.deepEqual(await scene.trail("nobody"), []);
  });

  test("a trail is bounded: the oldest lines go first", async (scene) => {
    await scene.add(newJob("a"));
    const claimer = scene.claimer();
    const { id, token } = await claimer.one();
    for (const start of [0, 150]) {
      const lines = Array.from({ length: 150 }, (_, n) => `line ${start + n}`);
      await scene.store.report({ claimer: claimer.id, reports: [{ id, token, lines }] });
    }
    const trail = await scene.trail("a");
    assert.equal(trail.length, maxTrailLength);
    assert.deepEqual([trail[0]?.text, trail.at(-1)?.text], ["line 100", "line 299"]);
  });

  test("a job's story over failures, crashes, a cancel and a redrive is told in order [A6]", async (scene) => {
    await scene.add(newJob("a"));
    const claimer = scene.claimer();
    await claimer.finish(await claimer.one(), { kind: "retry", delayMs: 0, error: '"one"' });
    await claimer.one();
    await scene.advance(2 * leaseMs);
    await scene.reapAll();
    await claimer.finish(await claimer.one(), die);
    await scene.redrive("a", "again");
    await scene.store.update({ id: "a", delayMs: 0 });
    await claimer.one();
    await scene.cancel("a", "enough");
    const trail = await scene.trail("a");
    assert.deepEqual(
      trail.map(({ kind, token, text }) => [kind, token, text]),
      [
        ["failed", 1, null],
        ["crashed", 2, "its lease ran out"],
        ["failed", 3, "no use"],
        ["redriven", 3, "again"],
        ["updated", 3, null],
        ["cancel-requested", 4, "enough"],
      ],
    );
    const times = trail.map(({ at }) => at.getTime());
    assert.deepEqual(
      times,
      times.toSorted((x, y) => x - y),
    );
    assert(Math.abs((await scene.now()).getTime() - (times.at(-1) ?? 0)) < minute);
  });
}
