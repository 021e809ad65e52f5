import assert from "node:assert/strict";
import type { Notice } from "../../store/notices.ts";
import { type ConformanceTest, hour, newJob, succeed } from "./scene.ts";

const has =
  (test: (notice: Notice) => boolean) =>
  (notices: readonly Notice[]): boolean =>
    notices.some(test);

const tellsOfQueue = (queue: string) =>
  has((notice) => notice.kind === "jobs" && (notice.queues === null || notice.queues.includes(queue)));
const tellsOfEnd = (id: string) =>
  has((notice) => notice.kind === "ended" && (notice.ids === null || notice.ids.includes(id)));

export function noticeTests(test: ConformanceTest): void {
  test("whoever listens on a handle hears of new jobs by their queue", async (scene) => {
    await scene.noticesUntil(() => scene.add(newJob("a", { queue: "q" })), tellsOfQueue("q"));
  });

  test("what becomes claimable later is told too: a retry, a redrive, an update, an unblocked child", async (scene) => {
    await scene.add(
      newJob("a", { queue: "q" }),
      newJob("c", { after: ["a"], queue: "children", name: "child" }),
    );
    const claimer = scene.claimer();
    const first = await claimer.one();
    await scene.noticesUntil(
      () => claimer.finish(first, { kind: "retry", delayMs: 0, error: "{}" }),
      tellsOfQueue("q"),
    );
    await scene.noticesUntil(() => scene.store.update({ id: "a", delayMs: 0 }), tellsOfQueue("q"));
    const second = await claimer.one();
    await scene.noticesUntil(() => claimer.finish(second, succeed), tellsOfQueue("children"));
  });

  test("a cancel of an active job, and the end of a job, are told by id", async (scene) => {
    await scene.add(newJob("a"), newJob("b", { delayMs: hour }));
    const claimer = scene.claimer();
    const claimed = await claimer.one();
    await scene.noticesUntil(
      () => scene.cancel("a"),
      has((notice) => notice.kind === "cancel" && notice.ids.includes("a")),
    );
    await scene.noticesUntil(() => claimer.finish(claimed, succeed), tellsOfEnd("a"));
    await scene.noticesUntil(() => scene.cancel("b"), tellsOfEnd("b"));
  });

  test("changes of schedules and of queues are told", async (scene) => {
    const rule = {
      key: "s",
      spec: "{}",
      job: "{}",
      paused: false,
      nextAt: null,
      ifVersion: null,
      ifNextAt: null,
      skipped: [],
      node: "n",
    };
    await scene.noticesUntil(
      () => scene.store.putSchedule(rule),
      has(({ kind }) => kind === "schedules"),
    );
    await scene.noticesUntil(
      () => scene.store.configureQueue({ queue: "q", paused: true }),
      has(({ kind }) => kind === "queues"),
    );
  });

  test("whoever stopped listening hears nothing more, and may stop twice", async (scene) => {
    const heard: Notice[] = [];
    const stop = await scene.store.subscribe((notice) => heard.push(notice));
    await stop();
    await stop();
    await scene.noticesUntil(() => scene.add(newJob("a")), tellsOfQueue("default"));
    assert.deepEqual(heard, []);
  });
}
