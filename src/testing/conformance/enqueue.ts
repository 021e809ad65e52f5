import assert from "node:assert/strict";
import { assertAbout, type ConformanceTest, die, hour, later, minute, newJob, succeed } from "./scene.ts";

export function enqueueTests(test: ConformanceTest): void {
  test("a new job is waiting, due now, and holds everything it was given", async (scene) => {
    const now = await scene.now();
    const given = newJob("a", {
      tags: ["x", "y"],
      priority: -7,
      slot: 17,
      rateKey: "r",
      concurrencyKey: "c",
    });
    assert.deepEqual(await scene.add(given), [{ id: "a", outcome: "added" }]);
    const job = await scene.job("a");
    assertAbout(job.enqueuedAt, now, "enqueuedAt");
    assert.deepEqual(job, {
      id: "a",
      name: "work",
      queue: "default",
      delivery: "at-least-once",
      priority: -7,
      tags: ["x", "y"],
      runAt: job.enqueuedAt,
      fireAt: job.enqueuedAt,
      enqueuedAt: job.enqueuedAt,
      attempt: 0,
      attempts: 5,
      crashes: 0,
      maxCrashes: 3,
      redrives: 0,
      token: 0,
      schedule: null,
      state: "waiting",
      reason: null,
      input: '{"n":1}',
      result: null,
      error: null,
      progress: null,
      expireAt: null,
      rollbacks: 0,
      version: 1,
      claimer: null,
      claimedAt: null,
      finishedAt: null,
      cancelRequested: false,
      waitsFor: [],
      concurrencyKey: "c",
      rateKey: "r",
      relayed: false,
      slot: 17,
    });
  });

  test("a tag of the library's own comes with the claim, stays over a retry, and is with the job at its end", async (scene) => {
    const tags = [
      "x",
      `\u001ftrace:00-${"a1".repeat(16)}-${"b2".repeat(8)}-01;vendor=a b,other=${"c".repeat(400)}`,
    ];
    await scene.add(newJob("a", { tags }));
    const claimer = scene.claimer();
    const first = await claimer.one();
    assert.deepEqual(first.tags, tags);
    await claimer.finish(first, { kind: "retry", delayMs: 0, error: "{}" });
    const second = await claimer.one();
    assert.deepEqual(second.tags, tags);
    await claimer.finish(second, succeed);
    assert.deepEqual((await scene.job("a")).tags, tags);
  });

  test("a delay counts from the store's now, a runAt is taken as it is, and wins over a delay", async (scene) => {
    const now = await scene.now();
    const runAt = later(now, 3 * hour);
    await scene.add(newJob("delayed", { delayMs: hour }), newJob("timed", { runAt, delayMs: minute }));
    assertAbout((await scene.job("delayed")).runAt, later(now, hour), "runAt");
    assert.deepEqual((await scene.job("timed")).runAt, runAt);
    assert.deepEqual((await scene.job("timed")).fireAt, runAt);
  });

  test("a fireAt of its own is kept beside runAt, and expireAt counts from runAt", async (scene) => {
    const runAt = later(await scene.now(), hour);
    const fireAt = later(runAt, -minute);
    await scene.add(newJob("a", { runAt, fireAt, expireInMs: minute, schedule: "nightly" }));
    const job = await scene.job("a");
    assert.deepEqual(job.fireAt, fireAt);
    assert.deepEqual(job.expireAt, later(runAt, minute));
    assert.equal(job.schedule, "nightly");
  });

  test("the same id from two producers, twice in one batch, or again after a lost reply is one job [C3]", async (scene) => {
    const other = await scene.open();
    const twice = await scene.add(newJob("a", { input: "1" }), newJob("a", { input: "2" }));
    assert.deepEqual(
      twice.map(({ outcome }) => outcome),
      ["added", "existing"],
    );
    const repeated = await other.enqueue({ jobs: [newJob("a", { input: "3", delayMs: hour, priority: 9 })] });
    assert.deepEqual(repeated, [{ id: "a", outcome: "existing" }]);
    assert.equal((await scene.job("a")).input, "1");
    assert.deepEqual(await scene.claimer().ids(), ["a"]);
    assert.deepEqual(await scene.claimer("node-2").ids(), []);
  });

  test("a delayed job is as idempotent as one that is due [C3]", async (scene) => {
    await scene.add(newJob("a", { delayMs: hour }));
    assert.deepEqual(await scene.add(newJob("a")), [{ id: "a", outcome: "existing" }]);
    assert.deepEqual(await scene.claimer().ids(), []);
  });

  test("enqueueing the same id twice is one job, also after it has run [K3]", async (scene) => {
    await scene.run(newJob("done"), succeed);
    await scene.run(newJob("dead"), die);
    await scene.add(newJob("cancelled", { delayMs: hour }));
    await scene.cancel("cancelled");
    const again = await scene.add(newJob("done"), newJob("dead"), newJob("cancelled"));
    assert.deepEqual(
      again.map(({ outcome }) => outcome),
      ["existing", "existing", "existing"],
    );
    assert.deepEqual(await scene.states("done", "dead", "cancelled"), ["succeeded", "dead", "cancelled"]);
    assert.deepEqual(await scene.claimer().ids(), []);
  });

  test("of ids that rise, those that are known among them are found [C3]", async (scene) => {
    const outcomes = async (...ids: string[]) =>
      (await scene.add(...ids.map((id) => newJob(id)))).map(({ id, outcome }) => `${id} ${outcome}`);
    assert.deepEqual(await outcomes("{t}a", "{t}c"), ["{t}a added", "{t}c added"]);
    const order = ["{t}b added", "{t}c existing", "{t}d added"];
    assert.deepEqual(await outcomes("{t}b", "{t}c", "{t}d"), order);
    assert.deepEqual(await outcomes("{t}ÿ", "{t}\uffee", "{t}\u{1f600}"), [
      "{t}ÿ added",
      "{t}\uffee added",
      "{t}\u{1f600} added",
    ]);
    assert.deepEqual(await outcomes("{t}\u{1f600}", "{t}\uffee"), [
      "{t}\u{1f600} existing",
      "{t}\uffee existing",
    ]);
  });

  test("a replayed request for a job that is active changes nothing [D1]", async (scene) => {
    await scene.add(newJob("a"));
    const claimer = scene.claimer();
    const claimed = await claimer.one();
    const before = await scene.job("a");
    assert.deepEqual(await scene.add(newJob("a", { input: "2" })), [{ id: "a", outcome: "existing" }]);
    assert.deepEqual(await scene.job("a"), before);
    assert.equal((await claimer.finish(claimed, succeed)).outcome, "written");
  });

  test("an empty batch is no work and no error", async (scene) => {
    assert.deepEqual(await scene.store.enqueue({ jobs: [] }), []);
  });

  test("ids, names, queues, tags, keys and inputs may hold any text", async (scene) => {
    const odd = ["ünïcödé 🕰️ 日本語", "a'b\"c`d", "{tag}:x/y|z\\%_*", "null", "0", " spaced "];
    const jobs = odd.map((text) =>
      newJob(text, {
        name: text,
        queue: text,
        tags: [text],
        input: JSON.stringify({ text, nested: ["\u0001", "\n"] }),
        concurrencyKey: text,
        unique: { key: text, forMs: null },
      }),
    );
    assert.deepEqual(
      (await scene.add(...jobs)).map(({ outcome }) => outcome),
      odd.map(() => "added"),
    );
    for (const [index, text] of odd.entries()) {
      const job = await scene.job(text);
      assert.deepEqual([job.name, job.queue, job.tags, job.input], [text, text, [text], jobs[index]?.input]);
      const { jobs: found } = await scene.store.list({
        filter: { names: [text], queues: [text], tags: [text] },
        limit: 10,
        order: "newest",
        cursor: null,
      });
      assert.deepEqual(
        found.map(({ id }) => id),
        [text],
      );
    }
    const names = odd.map((name) => ({ name, concurrency: 1, rate: null }));
    assert.deepEqual((await scene.claimer().ids({ names })).toSorted(), odd.toSorted());
  });

  test("an input of a mebibyte comes back as it went in", async (scene) => {
    const input = JSON.stringify("é".repeat(500_000));
    await scene.add(newJob("big", { input }));
    assert.equal((await scene.job("big")).input, input);
    assert.equal((await scene.claimer().one()).input, input);
  });

  test("answers are fresh: changing one changes nothing in the store", async (scene) => {
    const tags = ["x"];
    await scene.add(newJob("a", { tags }));
    tags.push("y");
    const job = await scene.job("a");
    job.runAt.setTime(0);
    (job.tags as string[]).push("z");
    const again = await scene.job("a");
    assert.deepEqual(again.tags, ["x"]);
    assert.notEqual(again.runAt.getTime(), 0);
  });

  test("whatever was acknowledged is there for a handle opened later [A1]", async (scene) => {
    await scene.add(newJob("due"), newJob("later", { delayMs: hour }));
    await scene.shut(scene.store);
    const reopened = await scene.open();
    const jobs = await reopened.get({ ids: ["due", "later", "unknown"] });
    assert.deepEqual(
      jobs.map((job) => job?.state ?? null),
      ["waiting", "waiting", null],
    );
    await scene.advance(2 * hour);
    assert.deepEqual(await scene.claimer("node-1", reopened).ids(), ["due", "later"]);
  });
}
