import assert from "node:assert/strict";
import {
  type HistoryEntry,
  type HistoryFigures,
  type HistoryParams,
  type HistoryPoint,
  longestTimeMs,
  noFigures,
  stepAt,
} from "../../history.ts";
import type { PruneParams } from "../../store/reaping.ts";
import type { Store } from "../../store/store.ts";
import { patiently } from "../until.ts";
import { type ConformanceTest, hour, later, minute, type Scene, second } from "./scene.ts";

const never = 1_000 * hour;
const day = 24 * hour;

function entry(changes: Partial<HistoryEntry> = {}): HistoryEntry {
  return { ...noFigures, agoMs: 0, queue: "default", name: "work", ...changes };
}

let sequence = 0;

/** As a process does it that has not called before. */
async function add(store: Store, ...entries: readonly HistoryEntry[]): Promise<void> {
  sequence += 1;
  await store.recordHistory({ node: `node-${sequence}`, sequence: 1, entries });
}

async function ask(scene: Scene, changes: Partial<HistoryParams> = {}): Promise<readonly HistoryPoint[]> {
  const { points, more } = await scene.store.history(await question(scene, changes));
  assert.equal(more, false);
  return points;
}

async function question(scene: Scene, changes: Partial<HistoryParams> = {}): Promise<HistoryParams> {
  const now = await scene.now();
  return {
    step: "minute",
    since: later(now, -40 * day),
    until: later(now, day),
    by: null,
    limit: 10_000,
    ...changes,
  };
}

/** Goes on to the beginning of the next step: also on a clock that flows, what follows is then within it. */
async function atStart(scene: Scene, ofMs: number): Promise<Date> {
  const now = (await scene.now()).getTime();
  await scene.advance(ofMs - (now % ofMs) + 2 * second);
  return scene.now();
}

const succeeded = (points: readonly HistoryPoint[]) => points.map((point) => point.succeeded);

export function historyTests(test: ConformanceTest): void {
  test("figures stand in the minute and the hour of the store's clock, and come back as they were given", async (scene) => {
    assert.deepEqual(await ask(scene), []);
    const now = await atStart(scene, hour);
    const figures: HistoryFigures = {
      succeeded: 1,
      failed: 2,
      crashed: 3,
      dead: 4,
      lost: 5,
      cancelled: 6,
      existing: 12,
      absorbed: 13,
      stale: 14,
      namingRetries: 15,
      publishRetries: 16,
      rollbackRetries: 17,
      runs: 7,
      runSumMs: 8_000,
      runMaxMs: 900,
      lateSumMs: 10_000,
      lateMaxMs: 1_100,
      late: [1, 2, 3, 4, 5, 6, 7],
      dueMax: 17,
    };
    await add(scene.store, entry(figures));
    for (const step of ["minute", "hour"] as const)
      assert.deepEqual(await ask(scene, { step }), [
        { at: new Date(stepAt(step, now.getTime())), ...figures },
      ]);
    await add(scene.store);
    assert.equal((await ask(scene)).length, 1, "nothing was added");
  });

  test("counts and sums add up, the highest stays, and other steps, queues and names have rows of their own", async (scene) => {
    await atStart(scene, hour);
    const one = { succeeded: 1, runs: 1, runSumMs: 50, runMaxMs: 50, late: [0, 0, 1, 0, 0, 0, 0] };
    const two = { succeeded: 2, runs: 2, runSumMs: 70, runMaxMs: 40, late: [3, 0, 1, 0, 0, 0, 9] };
    await add(scene.store, entry({ ...one, lateSumMs: 5, lateMaxMs: 5 }), entry({ queue: "mail", dead: 1 }));
    await add(scene.store, entry({ ...two, lateSumMs: 6, lateMaxMs: 6 }), entry({ name: "other", lost: 1 }));
    await add(scene.store, entry({ ...one, agoMs: minute, lateSumMs: 5, lateMaxMs: 5 }));
    const sum = {
      ...noFigures,
      succeeded: 3,
      runs: 3,
      runSumMs: 120,
      runMaxMs: 50,
      lateSumMs: 11,
      lateMaxMs: 6,
      late: [3, 0, 2, 0, 0, 0, 9],
    };
    const minutes = (await ask(scene, { queue: "default", name: "work" })).map(({ at: _, ...rest }) => rest);
    assert.deepEqual(minutes, [{ ...noFigures, ...one, lateSumMs: 5, lateMaxMs: 5 }, sum]);
    assert.deepEqual(
      (await ask(scene, { by: "queue" })).map((point) => [
        point.queue,
        point.succeeded,
        point.dead,
        point.lost,
      ]),
      [
        ["default", 1, 0, 0],
        ["default", 3, 0, 1],
        ["mail", 0, 1, 0],
      ],
    );
    assert.deepEqual(
      (await ask(scene, { by: "name", step: "hour" })).map((point) => [
        point.name,
        point.succeeded,
        point.lost,
      ]),
      [
        ["work", 1, 0],
        ["other", 0, 1],
        ["work", 3, 0],
      ],
      "the minute before was in the hour before",
    );
    assert.deepEqual(succeeded(await ask(scene)), [1, 3]);
    assert.deepEqual(succeeded(await ask(scene, { queue: "nobody" })), []);
  });

  test("one call may bring the same queue and name for several minutes, and twice for one", async (scene) => {
    await atStart(scene, hour);
    const figures = { succeeded: 1, runMaxMs: 9, late: [1, 0, 0, 0, 0, 0, 0] };
    await add(
      scene.store,
      entry({ ...figures, agoMs: 3 * minute }),
      entry({ ...figures }),
      entry({ ...figures, agoMs: 1, runMaxMs: 10 }),
      entry({ ...figures, agoMs: 3 * minute, runMaxMs: 7 }),
      entry({ ...figures, agoMs: hour }),
    );
    const seen = (await ask(scene)).map((point) => [point.succeeded, point.runMaxMs, point.late[0]]);
    assert.deepEqual(seen, [
      [1, 9, 1],
      [2, 9, 2],
      [2, 10, 2],
    ]);
    assert.deepEqual(succeeded(await ask(scene, { step: "hour" })), [3, 2]);
  });

  test("a call that is repeated adds nothing, and neither does an earlier one that comes late", async (scene) => {
    await atStart(scene, minute);
    const call = (node: string, number: number) =>
      scene.store.recordHistory({ node, sequence: number, entries: [entry({ succeeded: 1 })] });
    await call("a", 1);
    await call("a", 1);
    await call("b", 1);
    assert.deepEqual(succeeded(await ask(scene)), [2]);
    await call("a", 3);
    await call("a", 2);
    await call("a", 3);
    assert.deepEqual(succeeded(await ask(scene)), [3]);
  });

  test("calls at the same moment, through handles of their own, all count", async (scene) => {
    await atStart(scene, hour);
    const handles = await Promise.all(Array.from({ length: 4 }, () => scene.open()));
    const names = Array.from({ length: 20 }, (_, n) => `n${n}`);
    await Promise.all(
      handles.map(async (store, handle) => {
        const order = handle % 2 === 0 ? names : names.toReversed();
        for (let turn = 1; turn <= 3; turn += 1) {
          const entries = order.map((name) => entry({ name, succeeded: 1 }));
          await patiently(() => store.recordHistory({ node: `h${handle}`, sequence: turn, entries }));
        }
      }),
    );
    const points = await ask(scene, { by: "name", step: "hour" });
    assert.deepEqual([points.length, ...new Set(succeeded(points))], [20, 12]);
  });

  test("since is inclusive, until exclusive, and a limit cuts off the later points and says so", async (scene) => {
    const now = await atStart(scene, hour);
    const at = stepAt("minute", now.getTime());
    const agos = [0, 1, 2, 3, 4];
    await add(
      scene.store,
      ...agos.flatMap((n) =>
        ["x", "y"].map((name) => entry({ agoMs: n * minute, name, queue: "Q", succeeded: n })),
      ),
    );
    const since = new Date(at - 3 * minute);
    const until = new Date(at);
    assert.deepEqual(succeeded(await ask(scene, { since, until })), [6, 4, 2]);
    assert.deepEqual(
      succeeded(await ask(scene, { since: later(since, 1), until: later(until, 1) })),
      [4, 2, 0],
    );
    const cut = await question(scene, { by: "name", limit: 3 });
    const { points, more } = await scene.store.history(cut);
    assert.deepEqual(
      [points.map((point) => [point.name, point.succeeded]), more],
      [
        [
          ["x", 4],
          ["y", 4],
          ["x", 3],
        ],
        true,
      ],
    );
    assert.equal((await scene.store.history({ ...cut, limit: 10 })).more, false);
    assert.equal((await scene.store.history({ ...cut, limit: 9 })).more, true);
  });

  test("a limit counts points by name, of however many queues each is the sum", async (scene) => {
    await atStart(scene, hour);
    const queues = Array.from({ length: 12 }, (_, n) => `q${n}`);
    const each = (agoMs: number) => queues.map((queue) => entry({ queue, agoMs, succeeded: 1 }));
    await add(scene.store, ...[0, 1, 2, 3].flatMap((n) => each(n * minute)));
    for (const [limit, expected] of [
      [2, [12, 12]],
      [3, [12, 12, 12]],
      [4, [12, 12, 12, 12]],
    ] as const) {
      const { points, more } = await scene.store.history(await question(scene, { by: "name", limit }));
      assert.deepEqual([succeeded(points), more], [expected, limit < 4]);
    }
  });

  test("names of any letters keep apart, and are sorted by their code units", async (scene) => {
    await atStart(scene, hour);
    const names = ["A", "Z", "a", "a b", "a:b", "z", "ä", "名前", "{tag}", "x".repeat(128)];
    await add(scene.store, ...names.map((name) => entry({ name, queue: "a", succeeded: 1 })));
    await add(scene.store, entry({ name: "b", queue: "a:a", succeeded: 1 }));
    const points = await ask(scene, { by: "name" });
    assert.deepEqual(
      points.map(({ name }) => name),
      [...names, "b"].toSorted((a, b) => (a < b ? -1 : 1)),
    );
    assert.deepEqual(succeeded(await ask(scene, { name: "a" })), [1]);
    assert.deepEqual(succeeded(await ask(scene, { queue: "a:a" })), [1]);
  });

  test("large sums stay exact", async (scene) => {
    await atStart(scene, hour);
    const large = {
      succeeded: 10_000_001,
      lateSumMs: 7 * longestTimeMs * 1_000_000 + 1,
      lateMaxMs: longestTimeMs,
    };
    await add(scene.store, entry(large));
    await add(scene.store, entry(large));
    const [point] = await ask(scene, { step: "hour" });
    assert.deepEqual(
      [point?.succeeded, point?.lateSumMs, point?.lateMaxMs],
      [20_000_002, 2 * large.lateSumMs, longestTimeMs],
    );
    assert(Number.isSafeInteger(point?.lateSumMs));
  });

  test("a full call of many queues and names is kept whole", async (scene) => {
    await atStart(scene, hour);
    const entries = Array.from({ length: 1_000 }, (_, n) =>
      entry({ queue: `q${n % 40}`, name: `n${n}`, succeeded: n, late: [n, 0, 0, 0, 0, 0, 1] }),
    );
    await add(scene.store, ...entries);
    assert.deepEqual(succeeded(await ask(scene)), [499_500]);
    const points = await ask(scene, { by: "name" });
    assert.deepEqual([points.length, points.find(({ name }) => name === "n777")?.late[0]], [1_000, 777]);
    assert.equal((await ask(scene, { by: "queue", step: "hour" })).length, 40);
  });

  test("the most jobs that were due are kept for a queue and for all, apart from its names", async (scene) => {
    const now = await atStart(scene, hour);
    const depth = (queue: string, dueMax: number, agoMs = 0) => entry({ queue, name: "", dueMax, agoMs });
    await add(scene.store, depth("mail", 30), depth("", 35), entry({ queue: "mail", succeeded: 1 }));
    await add(scene.store, depth("mail", 20), depth("post", 12), depth("", 32));
    await add(scene.store, depth("mail", 40, minute));
    const due = (points: readonly HistoryPoint[]) =>
      points.map(({ at, queue, name, succeeded: done, dueMax }) => [
        Math.floor((at.getTime() - now.getTime()) / minute) + 1,
        queue ?? name,
        done,
        dueMax,
      ]);
    assert.deepEqual(
      due(await ask(scene)),
      [[0, undefined, 1, 35]],
      "not the sum of queues: they had it at other moments",
    );
    assert.deepEqual(due(await ask(scene, { by: "queue" })), [
      [-1, "mail", 0, 40],
      [0, "mail", 1, 30],
      [0, "post", 0, 12],
    ]);
    assert.deepEqual(due(await ask(scene, { queue: "post" })), [[0, undefined, 0, 12]]);
    assert.deepEqual(due(await ask(scene, { by: "name" })), [[0, "work", 1, 0]], "names have no depth");
    const hours = await ask(scene, { step: "hour", by: "queue", queue: "mail" });
    assert.deepEqual(
      hours.map(({ dueMax }) => dueMax),
      [40, 30],
    );
  });

  pruneTests(test);

  test("a namespace sees its own history only", async (scene) => {
    const other = await scene.openOther();
    await scene.store.recordHistory({ node: "n", sequence: 1, entries: [entry({ succeeded: 1 })] });
    await other.recordHistory({ node: "n", sequence: 1, entries: [entry({ succeeded: 2 })] });
    assert.deepEqual(succeeded(await ask(scene)), [1]);
    assert.deepEqual(succeeded((await other.history(await question(scene))).points), [2]);
  });
}

const prune = (scene: Scene, changes: Partial<PruneParams>) =>
  scene.store.prune({
    succeededMs: never,
    cancelledMs: never,
    deadMs: never,
    lostMs: never,
    nodesMs: never,
    occurrencesMs: never,
    limit: 1_000,
    ...changes,
  });

function pruneTests(test: ConformanceTest): void {
  test("minutes and hours are forgotten each by its own time, in slices, and prune says whether there are more", async (scene) => {
    await atStart(scene, hour);
    await add(scene.store, ...[0, 1, 2].map((n) => entry({ agoMs: n * minute, succeeded: 1 })));
    await scene.advance(5 * hour);
    await add(scene.store, entry({ succeeded: 5 }));
    assert.deepEqual(await prune(scene, { limit: 2 }), { pruned: 0, more: false });
    const historyMs = (minuteMs: number, hourMs: number) => ({
      historyMs: { minute: minuteMs, hour: hourMs },
    });
    assert.deepEqual(await prune(scene, historyMs(7 * hour, 7 * hour)), { pruned: 0, more: false });
    assert.deepEqual(succeeded(await ask(scene)), [1, 1, 1, 5]);
    assert.deepEqual(await prune(scene, { ...historyMs(hour, 10 * hour), limit: 2 }), {
      pruned: 0,
      more: true,
    });
    assert.deepEqual(succeeded(await ask(scene)), [1, 5]);
    assert.deepEqual(await prune(scene, { ...historyMs(hour, 10 * hour), limit: 2 }), {
      pruned: 0,
      more: false,
    });
    assert.deepEqual(succeeded(await ask(scene)), [5]);
    assert.deepEqual(succeeded(await ask(scene, { step: "hour" })), [2, 1, 5]);
    assert.deepEqual(await prune(scene, historyMs(hour, hour)), { pruned: 0, more: false });
    assert.deepEqual(succeeded(await ask(scene, { step: "hour" })), [5]);
  });

  test("who has not written for long may begin again, and what it writes then counts", async (scene) => {
    const call = () =>
      scene.store.recordHistory({ node: "a", sequence: 1, entries: [entry({ succeeded: 1 })] });
    await call();
    await scene.advance(2 * hour);
    await prune(scene, { nodesMs: 3 * hour });
    await call();
    assert.deepEqual(succeeded(await ask(scene)), [1], "it is still known");
    await prune(scene, { nodesMs: hour });
    await call();
    assert.deepEqual(succeeded(await ask(scene)), [1, 1]);
  });
}
