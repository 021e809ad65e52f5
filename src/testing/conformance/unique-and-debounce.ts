import assert from "node:assert/strict";
import type { NewJob } from "../../store/jobs.ts";
import {
  assertAbout,
  type ConformanceTest,
  die,
  hour,
  later,
  minute,
  newJob,
  second,
  succeed,
} from "./scene.ts";

const pending = (id: string, changes: Partial<NewJob> = {}): NewJob =>
  newJob(id, { unique: { key: "k", forMs: null }, ...changes });
const forAnHour = (id: string): NewJob => newJob(id, { unique: { key: "k", forMs: hour } });
const bounced = (id: string, input: string, changes: Partial<NewJob> = {}): NewJob =>
  newJob(id, { input, debounce: { key: "k", waitMs: 10 * minute, maxMs: null }, ...changes });

export function uniqueTests(test: ConformanceTest): void {
  test("an alias behind the ids of all jobs is found among ids that rise", async (scene) => {
    const unique = { key: "k", forMs: null };
    const [, absorbed] = await scene.add(newJob("a", { unique }), newJob("z", { unique }));
    assert.equal(absorbed?.outcome, "absorbed");
    assert.deepEqual(await scene.add(newJob("y"), newJob("z")), [
      { id: "y", outcome: "added" },
      { id: "a", outcome: "existing" },
    ]);
  });

  test("a second job with a unique key is absorbed while the first waits, runs or is tried again", async (scene) => {
    const claimer = scene.claimer();
    await scene.add(pending("a"));
    assert.deepEqual(await scene.add(pending("b")), [{ id: "a", outcome: "absorbed" }]);
    const claimed = await claimer.one();
    assert.deepEqual(await scene.add(pending("c")), [{ id: "a", outcome: "absorbed" }]);
    await claimer.finish(claimed, { kind: "retry", delayMs: hour, error: "{}" });
    assert.deepEqual(await scene.add(pending("d")), [{ id: "a", outcome: "absorbed" }]);
    assert.deepEqual(await scene.store.count({ filter: {}, by: [] }), [{ count: 1 }]);
  });

  test("two jobs with one unique key in one batch: the first is added, the second absorbed", async (scene) => {
    assert.deepEqual(await scene.add(pending("a"), pending("b")), [
      { id: "a", outcome: "added" },
      { id: "a", outcome: "absorbed" },
    ]);
  });

  test("a blocked job holds its unique key", async (scene) => {
    await scene.add(newJob("parent"), pending("a", { after: ["parent"] }));
    assert.deepEqual(await scene.add(pending("b")), [{ id: "a", outcome: "absorbed" }]);
  });

  test("a unique key is free once its holder is terminal", async (scene) => {
    await scene.run(pending("a"), succeed);
    await scene.run(pending("b"), die);
    assert.deepEqual(await scene.add(pending("c")), [{ id: "c", outcome: "added" }]);
    await scene.cancel("c");
    assert.deepEqual(await scene.add(pending("d")), [{ id: "d", outcome: "added" }]);
  });

  test("a key held for a time is held in every state, and by the time of its enqueueing", async (scene) => {
    await scene.run(forAnHour("a"), succeed);
    await scene.advance(50 * minute);
    assert.deepEqual(await scene.add(forAnHour("b")), [{ id: "a", outcome: "absorbed" }]);
    await scene.advance(20 * minute);
    assert.deepEqual(await scene.add(forAnHour("c")), [{ id: "c", outcome: "added" }]);
  });

  test("a key held for a time is free after it although its holder still waits", async (scene) => {
    await scene.add(newJob("a", { unique: { key: "k", forMs: hour }, delayMs: 9 * hour }));
    await scene.advance(2 * hour);
    assert.deepEqual(await scene.add(forAnHour("b")), [{ id: "b", outcome: "added" }]);
  });

  test("an absorbed id stays an alias: enqueueing it again gives the job that stands for it", async (scene) => {
    await scene.add(pending("a"), pending("b"));
    assert.deepEqual(await scene.add(pending("b")), [{ id: "a", outcome: "existing" }]);
    await scene.advance(second);
    await scene.claimer().ids();
    assert.deepEqual(await scene.add(newJob("b")), [{ id: "a", outcome: "existing" }]);
    assert.deepEqual(await scene.store.count({ filter: {}, by: [] }), [{ count: 1 }]);
  });

  test("an alias finds its job in get, trail, update, cancel and redrive, answered under the id that was asked", async (scene) => {
    await scene.add(pending("a"), pending("b"));
    assert.deepEqual(await scene.job("b"), await scene.job("a"));
    assert.deepEqual(await scene.store.update({ id: "b", input: "2" }), {
      outcome: "updated",
      state: "waiting",
    });
    assert.deepEqual(await scene.trail("b"), await scene.trail("a"));
    assert.equal((await scene.trail("b")).length, 1);
    const claimer = scene.claimer();
    const claimed = await claimer.one();
    assert.deepEqual((await scene.store.cancel({ select: { ids: ["b"] }, reason: null })).results, [
      { id: "b", outcome: "requested" },
    ]);
    await claimer.finish(claimed, die);
    assert.equal(await scene.redrive("b"), "refused");
  });

  test("a claim is known by its job's own id only", async (scene) => {
    await scene.add(pending("a"), pending("b"));
    const claimer = scene.claimer();
    const { token } = await claimer.one();
    assert.deepEqual(await claimer.finish({ id: "b", token }, succeed), { outcome: "stale", state: null });
    assert.equal((await claimer.extend({ id: "b", token })).outcome, "stale");
  });

  test("an absorbed id never becomes a job of its own, also after the holder has run [K3]", async (scene) => {
    await scene.add(pending("a"), pending("b"));
    const claimer = scene.claimer();
    await claimer.finish(await claimer.one(), succeed);
    assert.deepEqual(await scene.add(pending("b")), [{ id: "a", outcome: "existing" }]);
    assert.deepEqual(await claimer.ids(), []);
  });

  test("keys differ by every character", async (scene) => {
    const keys = ["k", "K", "k ", "k:1", "k:1:", "k\u0301", "ḱ"];
    const results = await scene.add(
      ...keys.map((key, index) => newJob(`j${index}`, { unique: { key, forMs: null } })),
    );
    assert.deepEqual(
      results.map(({ outcome }) => outcome),
      keys.map(() => "added"),
    );
  });
}

export function debounceTests(test: ConformanceTest): void {
  test("the first debounced job is due after the wait, whatever its runAt and delay say", async (scene) => {
    const now = await scene.now();
    assert.deepEqual(await scene.add(bounced("a", "1", { delayMs: 9 * hour })), [
      { id: "a", outcome: "added" },
    ]);
    assertAbout((await scene.job("a")).runAt, later(now, 10 * minute));
  });

  test("a second one moves the first, gives it its input and keys, and raises its version", async (scene) => {
    await scene.add(bounced("a", "1", { priority: 1, expireInMs: hour }));
    const before = await scene.job("a");
    await scene.advance(5 * minute);
    const second = bounced("b", "2", { priority: 9, concurrencyKey: "c", rateKey: "r", expireInMs: null });
    assert.deepEqual(await scene.add(second), [{ id: "a", outcome: "debounced" }]);
    const after = await scene.job("a");
    assertAbout(after.runAt, later(before.runAt, 5 * minute));
    assert.deepEqual(after, {
      ...before,
      input: "2",
      concurrencyKey: "c",
      rateKey: "r",
      runAt: after.runAt,
      fireAt: after.runAt,
      expireAt: later(after.runAt, hour),
      version: 2,
    });
  });

  test("a debounced id is an alias: repeating it after a lost reply moves nothing", async (scene) => {
    await scene.add(bounced("a", "1"), bounced("b", "2"));
    const before = await scene.job("a");
    await scene.advance(5 * minute);
    assert.deepEqual(await scene.add(bounced("b", "2")), [{ id: "a", outcome: "existing" }]);
    assert.deepEqual(await scene.job("a"), before);
  });

  test("the other jobs of a batch with debounced ones are all claimed", async (scene) => {
    await scene.add(newJob("1"), bounced("a", "1"), newJob("2"), bounced("b", "2"), newJob("3"));
    const claimed = await scene.claimer().take({ limit: 10 });
    assert.deepEqual(
      claimed.map(({ id }) => id),
      ["1", "2", "3"],
    );
  });

  test("debouncing never moves a job beyond maxMs after its own enqueueing", async (scene) => {
    const impatient = (id: string): NewJob =>
      newJob(id, { debounce: { key: "k", waitMs: 10 * minute, maxMs: 15 * minute } });
    const start = await scene.now();
    await scene.add(impatient("a"));
    await scene.advance(9 * minute);
    await scene.add(impatient("b"));
    assertAbout((await scene.job("a")).runAt, later(start, 15 * minute));
  });

  test("a job that was claimed once takes no more inputs: the next one is added", async (scene) => {
    await scene.add(bounced("a", "1"));
    await scene.advance(11 * minute);
    const claimer = scene.claimer();
    const claimed = await claimer.one();
    assert.deepEqual(await scene.add(bounced("b", "2")), [{ id: "b", outcome: "added" }]);
    await claimer.finish(claimed, { kind: "release" });
    assert.deepEqual(await scene.add(bounced("c", "3")), [{ id: "b", outcome: "debounced" }]);
    assert.equal((await scene.job("a")).input, "1");
  });

  test("a debounced occurrence keeps its nominal time", async (scene) => {
    const fireAt = later(await scene.now(), -hour);
    await scene.add(bounced("a", "1", { schedule: "nightly", fireAt }));
    await scene.add(bounced("b", "2"));
    assert.deepEqual((await scene.job("a")).fireAt, fireAt);
  });
}
