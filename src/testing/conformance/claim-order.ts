import assert from "node:assert/strict";
import { leaseMs, named } from "./claimer.ts";
import { assertAbout, type ConformanceTest, hour, later, minute, newJob, succeed } from "./scene.ts";

export function claimOrderTests(test: ConformanceTest): void {
  test("only due, waiting jobs are claimed, the oldest due first within a priority, up to the limit [A2]", async (scene) => {
    const now = await scene.now();
    const ago = (minutes: number): Date => later(now, -minutes * minute);
    await scene.add(
      newJob("young", { runAt: ago(1) }),
      newJob("old", { runAt: ago(9) }),
      newJob("not yet", { runAt: later(now, hour) }),
      newJob("blocked", { after: ["young"] }),
      newJob("low", { runAt: ago(99), priority: -5 }),
      newJob("high", { runAt: ago(0), priority: 5 }),
      newJob("middle", { runAt: ago(5) }),
    );
    const claimer = scene.claimer();
    assert.deepEqual(await claimer.ids({ limit: 3 }), ["high", "old", "middle"]);
    assert.deepEqual(await claimer.ids(), ["young", "low"]);
    assert.deepEqual(await claimer.ids(), []);
  });

  test("jobs due at the same instant go in the order of their enqueueing", async (scene) => {
    const runAt = later(await scene.now(), -minute);
    const ids = ["c", "a", "b", "10", "9"];
    for (const id of ids) await scene.add(newJob(id, { runAt }));
    const claimer = scene.claimer();
    assert.deepEqual(await claimer.ids({ limit: 2 }), ["c", "a"]);
    assert.deepEqual(await claimer.ids(), ["b", "10", "9"]);
  });

  test("a job is never claimed before its time, and nextAt says when to ask again", async (scene) => {
    await scene.add(newJob("later", { delayMs: 2 * hour }), newJob("soon", { delayMs: hour }));
    const claimer = scene.claimer();
    const early = await claimer.claim();
    assert.deepEqual(early.jobs, []);
    assert(early.nextAt && early.nextAt <= (await scene.job("soon")).runAt, "nextAt is never too late");
    await scene.advance(50 * minute);
    assert.deepEqual(await claimer.ids(), []);
    await scene.advance(20 * minute);
    const due = await claimer.claim();
    assert.deepEqual(
      due.jobs.map(({ id }) => id),
      ["soon"],
    );
    assert(due.nextAt && due.nextAt <= (await scene.job("later")).runAt, "nextAt is never too late");
  });

  test("nextAt is at once while more is due, and null when nothing ever will be", async (scene) => {
    await scene.add(newJob("a"), newJob("b"), newJob("other", { name: "other" }));
    const claimer = scene.claimer();
    const first = await claimer.claim({ limit: 1 });
    assert(first.nextAt && first.nextAt <= first.now);
    const second = await claimer.claim({ limit: 1 });
    assert.equal(second.nextAt, null);
  });

  test("a claim raises token and attempt, names its claimer and time, and leaves the rest", async (scene) => {
    await scene.add(newJob("a", { priority: 3, tags: ["t"] }));
    const before = await scene.job("a");
    const claimed = await scene.claimer("node-7").one();
    const after = await scene.job("a");
    assertAbout(after.claimedAt, await scene.now(), "claimedAt");
    assert.deepEqual(after, {
      ...before,
      state: "active",
      token: 1,
      attempt: 1,
      claimer: "node-7",
      claimedAt: after.claimedAt,
    });
    assert.deepEqual(claimed, {
      id: "a",
      name: "work",
      queue: "default",
      delivery: "at-least-once",
      priority: 3,
      tags: ["t"],
      runAt: after.runAt,
      fireAt: after.fireAt,
      enqueuedAt: after.enqueuedAt,
      attempt: 1,
      attempts: 5,
      crashes: 0,
      maxCrashes: 3,
      redrives: 0,
      token: 1,
      schedule: null,
      input: '{"n":1}',
      cancelRequested: false,
    });
  });

  test("the claim is on record before its answer is there, so that nothing runs unrecorded [K4]", async (scene) => {
    await scene.add(newJob("a", { delivery: "at-most-once" }));
    await scene.claimer().one();
    const other = await scene.open();
    const [job] = await other.get({ ids: ["a"] });
    assert.deepEqual([job?.state, job?.token, job?.claimer], ["active", 1, "node-1"]);
  });

  test("only the names asked for are claimed, also behind a backlog of others", async (scene) => {
    const strangers = Array.from({ length: 50 }, (_, n) => newJob(`x${n}`, { name: "strange", priority: 9 }));
    await scene.add(...strangers, newJob("a"), newJob("b", { name: "second" }));
    const claimer = scene.claimer();
    assert.deepEqual(await claimer.ids({ names: [] }), []);
    assert.deepEqual(await claimer.ids({ names: [named("second"), named("work")] }), ["a", "b"]);
  });

  test("only the queues asked for are claimed, each up to its own number", async (scene) => {
    await scene.add(
      newJob("a1", { queue: "a" }),
      newJob("a2", { queue: "a" }),
      newJob("a3", { queue: "a" }),
      newJob("b1", { queue: "b" }),
      newJob("c1", { queue: "c" }),
    );
    const queues = [
      { queue: "a", limit: 2 },
      { queue: "b", limit: 5 },
      { queue: "c", limit: 0 },
    ];
    const claimer = scene.claimer();
    const first = await claimer.claim({ queues });
    assert.deepEqual(
      first.jobs.map(({ id }) => id),
      ["a1", "a2", "b1"],
    );
    assert(first.nextAt && first.nextAt <= first.now, "a3 may be had at once");
    const second = await claimer.claim({ queues });
    assert.deepEqual(
      second.jobs.map(({ id }) => id),
      ["a3"],
    );
    assert.equal(second.nextAt, null, "asking the same again never brings c1");
  });

  test("a limit of zero claims nothing", async (scene) => {
    await scene.add(newJob("a"));
    assert.deepEqual(await scene.claimer().ids({ limit: 0 }), []);
    assert.equal(await scene.stateOf("a"), "waiting");
  });

  test("relayed jobs are never claimed", async (scene) => {
    await scene.add(newJob("a", { relayed: true }));
    const { jobs, nextAt } = await scene.claimer().claim();
    assert.deepEqual([jobs, nextAt], [[], null]);
    assert.equal(await scene.stateOf("a"), "waiting");
  });

  test("a retry comes back behind jobs that were due before it", async (scene) => {
    const now = await scene.now();
    await scene.run(newJob("again", { runAt: later(now, -hour) }), {
      kind: "retry",
      delayMs: 0,
      error: "{}",
    });
    await scene.add(newJob("older", { runAt: later(now, -minute) }));
    assert.deepEqual(await scene.claimer().ids(), ["older", "again"]);
  });
}

export function claimRepeatTests(test: ConformanceTest): void {
  test("a repeated claim brings back what it took, and nothing of the claims before it", async (scene) => {
    await scene.add(newJob("first"), newJob("second"));
    const claimer = scene.claimer();
    assert.deepEqual(await claimer.ids({ limit: 1 }), ["first"]);
    const params = claimer.next({ limit: 1 });
    const second = await scene.store.claim(params);
    assert.deepEqual((await scene.store.claim(params)).jobs, second.jobs);
    assert.deepEqual(
      second.jobs.map(({ id }) => id),
      ["second"],
    );
  });

  test("a claim repeated after a lost reply gives the same jobs with the same tokens", async (scene) => {
    await scene.add(newJob("a"), newJob("b"), newJob("c"));
    const params = scene.claimer().next({ limit: 2 });
    const first = await scene.store.claim(params);
    const again = await scene.store.claim(params);
    assert.deepEqual(again.jobs, first.jobs);
    assert.equal(await scene.stateOf("c"), "waiting");
  });

  test("a lost reply costs no at-most-once job: the repeat brings it while its lease lasts", async (scene) => {
    await scene.add(newJob("a", { delivery: "at-most-once" }));
    const params = scene.claimer().next();
    await scene.store.claim(params);
    await scene.advance(leaseMs / 2);
    const again = await scene.store.claim(params);
    assert.deepEqual(
      again.jobs.map(({ id, token }) => ({ id, token })),
      [{ id: "a", token: 1 }],
    );
    await scene.advance(leaseMs);
    assert.deepEqual((await scene.store.claim(params)).jobs, [], "its lease has run out");
  });

  test("a repeated claim leaves out what has ended or been taken since", async (scene) => {
    await scene.add(newJob("a"), newJob("b"), newJob("c"));
    const claimer = scene.claimer();
    const params = claimer.next();
    const [a, b, c] = (await scene.store.claim(params)).jobs;
    assert(a && b && c);
    await claimer.finish(a, succeed);
    await claimer.finish(b, { kind: "release" });
    await scene.claimer("node-2").one();
    const again = await scene.store.claim(params);
    assert.deepEqual(
      again.jobs.map(({ id }) => id),
      ["c"],
    );
  });

  test("a repeated claim shows what was asked of its jobs since", async (scene) => {
    await scene.add(newJob("a"));
    const params = scene.claimer().next();
    await scene.store.claim(params);
    await scene.cancel("a");
    assert.equal((await scene.store.claim(params)).jobs[0]?.cancelRequested, true);
  });

  test("a lower sequence is stale and claims nothing, also through another handle", async (scene) => {
    const claimer = scene.claimer();
    const early = claimer.next();
    await scene.add(newJob("z"));
    await claimer.claim();
    await scene.add(newJob("a"));
    const other = await scene.open();
    const answer = await other.claim(early);
    assert.deepEqual([answer.outcome, answer.jobs], ["stale", []]);
    assert.equal(await scene.stateOf("a"), "waiting");
  });

  test("a lower sequence is stale also when the later claim took nothing", async (scene) => {
    const claimer = scene.claimer();
    const early = claimer.next();
    await claimer.claim();
    await scene.add(newJob("a"));
    assert.equal((await scene.store.claim(early)).outcome, "stale");
  });

  test("sequences may leap, and each claimer counts its own", async (scene) => {
    const leaping = scene.claimer("leaping");
    await scene.add(newJob("a"));
    assert.equal((await leaping.claim({ sequence: 1_000_000 })).jobs.length, 1);
    await scene.add(newJob("b"));
    assert.equal((await scene.claimer("fresh").claim({ sequence: 1 })).jobs.length, 1);
    assert.equal((await leaping.claim({ sequence: 999_999 })).outcome, "stale");
  });

  test("a repeat of an empty claim stays empty although jobs came since", async (scene) => {
    const params = scene.claimer().next();
    await scene.store.claim(params);
    await scene.add(newJob("a"));
    const again = await scene.store.claim(params);
    assert.deepEqual(again.jobs, []);
    assert(again.nextAt && again.nextAt <= again.now);
  });
}
