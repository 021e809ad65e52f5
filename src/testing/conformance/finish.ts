import assert from "node:assert/strict";
import type { Outcome } from "../../state.ts";
import { leaseMs } from "./claimer.ts";
import {
  assertAbout,
  type ConformanceTest,
  die,
  hour,
  later,
  lose,
  minute,
  newJob,
  retry,
  succeed,
} from "./scene.ts";

export function finishTests(test: ConformanceTest): void {
  test("a success whose result is left out has its reason, on the job and in the trail; its children go on", async (scene) => {
    const notKept = "result not kept: too long";
    const claimer = scene.claimer();
    await scene.add(newJob("{t}a"), newJob("{t}b"), newJob("{t}c", { after: ["{t}a"] }));
    const [a, b] = await claimer.take();
    assert(a && b);
    const finishes = [
      { ...a, outcome: { kind: "succeed", result: null, notKept } as const },
      { ...b, outcome: { kind: "succeed", result: '"kept"' } as const },
    ];
    const results = await scene.store.finish({ claimer: claimer.id, finishes });
    assert.deepEqual(results, [
      { outcome: "written", state: "succeeded" },
      { outcome: "written", state: "succeeded" },
    ]);
    const jobs = await Promise.all(["{t}a", "{t}b"].map((id) => scene.job(id)));
    assert.deepEqual(
      jobs.map(({ state, result, reason }) => [state, result, reason]),
      [
        ["succeeded", null, notKept],
        ["succeeded", '"kept"', null],
      ],
    );
    assert.deepEqual(
      (await scene.trail("{t}a")).map(({ kind, text, attempt }) => [kind, text, attempt]),
      [["result-not-kept", notKept, 1]],
    );
    assert.deepEqual([await scene.trail("{t}b"), await scene.stateOf("{t}c")], [[], "waiting"]);
    assert.deepEqual(await claimer.finish(a, succeed), { outcome: "repeated", state: "succeeded" });
  });

  test("success is recorded when it is confirmed, with its result and time, and not before [A3]", async (scene) => {
    await scene.add(newJob("a"));
    const claimer = scene.claimer();
    const claimed = await claimer.one();
    assert.deepEqual([(await scene.job("a")).state, (await scene.job("a")).result], ["active", null]);
    assert.deepEqual(await claimer.finish(claimed, { kind: "succeed", result: '{"ok":true}' }), {
      outcome: "written",
      state: "succeeded",
    });
    const job = await scene.job("a");
    assert.deepEqual([job.result, job.attempt, job.reason, job.claimer], ['{"ok":true}', 1, null, "node-1"]);
    assertAbout(job.finishedAt, await scene.now(), "finishedAt");
  });

  test("a retry leaves the active and enters the waiting with its error in one step [C4]", async (scene) => {
    await scene.add(newJob("a"));
    const fireAt = (await scene.job("a")).fireAt;
    const claimer = scene.claimer();
    const claimed = await claimer.one();
    const now = await scene.now();
    assert.deepEqual(await claimer.finish(claimed, retry(hour, '"first"')), {
      outcome: "written",
      state: "waiting",
    });
    const job = await scene.job("a");
    assert.deepEqual([job.attempt, job.error, job.finishedAt], [1, '"first"', null]);
    assert.deepEqual(job.fireAt, fireAt, "retries never move the nominal time");
    assertAbout(job.runAt, later(now, hour), "runAt");
    assert.deepEqual(await claimer.ids(), []);
    await scene.advance(2 * hour);
    const again = await claimer.one();
    assert.deepEqual([again.attempt, again.token], [2, 2]);
  });

  test("each failure of the ladder is on record, and the last one makes it dead with its error [A5, A6]", async (scene) => {
    await scene.add(newJob("a", { attempts: 3 }));
    const claimer = scene.claimer();
    await claimer.finish(await claimer.one(), retry(30_000, '"one"'));
    await scene.advance(hour);
    await claimer.finish(await claimer.one(), retry(60_000, '"two"'));
    await scene.advance(hour);
    const reason = "attempts used up (3)";
    await claimer.finish(await claimer.one(), { kind: "die", reason, error: '"three"' });
    const job = await scene.job("a");
    assert.deepEqual([job.state, job.reason, job.error, job.attempt], ["dead", reason, '"three"', 3]);
    assert.deepEqual(
      (await scene.trail("a")).map(({ kind, attempt, token, error, text }) => ({
        kind,
        attempt,
        token,
        error,
        text,
      })),
      [
        { kind: "failed", attempt: 1, token: 1, error: '"one"', text: null },
        { kind: "failed", attempt: 2, token: 2, error: '"two"', text: null },
        { kind: "failed", attempt: 3, token: 3, error: '"three"', text: reason },
      ],
    );
    await scene.advance(hour);
    assert.deepEqual(await claimer.ids(), []);
  });

  test("an error is kept also after a later success", async (scene) => {
    await scene.add(newJob("a"));
    const claimer = scene.claimer();
    await claimer.finish(await claimer.one(), retry(0, '"first"'));
    await claimer.finish(await claimer.one(), succeed);
    assert.deepEqual([(await scene.job("a")).state, (await scene.job("a")).error], ["succeeded", '"first"']);
  });

  test("an at-most-once job that failed is dead with its error and never claimed again by itself [K8]", async (scene) => {
    await scene.run(newJob("a", { delivery: "at-most-once" }), die);
    const job = await scene.job("a");
    assert.deepEqual(
      [job.state, job.error, job.reason],
      ["dead", '{"name":"Error","message":"broken"}', "no use"],
    );
    await scene.advance(24 * hour);
    await scene.reapAll();
    assert.deepEqual(await scene.claimer().ids(), []);
  });

  test("releasing an unstarted job gives back its try and keeps its place, also for at-most-once [K8, A8]", async (scene) => {
    await scene.add(newJob("a", { delivery: "at-most-once" }), newJob("b"));
    const claimer = scene.claimer();
    const claimed = await claimer.one({ limit: 1 });
    const before = await scene.job("a");
    assert.deepEqual(await claimer.finish(claimed, { kind: "release" }), {
      outcome: "written",
      state: "waiting",
    });
    const job = await scene.job("a");
    assert.deepEqual([job.attempt, job.token], [0, 1]);
    assert.deepEqual(job.runAt, before.runAt);
    assert.deepEqual(await scene.trail("a"), []);
    const taken = await scene.claimer("node-2").take();
    assert.deepEqual(
      taken.map(({ id, attempt, token }) => ({ id, attempt, token })),
      [
        { id: "a", attempt: 1, token: 2 },
        { id: "b", attempt: 1, token: 1 },
      ],
    );
  });

  test("a release may come back later, with the error that tells why, also for at-most-once", async (scene) => {
    const release = { kind: "release", delayMs: minute, error: '"unreadable"' } as const;
    await scene.run(newJob("a", { delivery: "at-most-once" }), release);
    const job = await scene.job("a");
    assert.deepEqual([job.state, job.attempt, job.rollbacks, job.error], ["waiting", 0, 0, '"unreadable"']);
    assertAbout(job.runAt, later(await scene.now(), minute), "runAt");
    assert.deepEqual(await scene.trail("a"), []);
    assert.deepEqual(await scene.claimer().ids(), []);
  });

  test("a snooze comes back later and uses up no attempt", async (scene) => {
    await scene.run(newJob("a"), { kind: "snooze", delayMs: hour });
    const job = await scene.job("a");
    assert.deepEqual([job.state, job.attempt, job.token, job.error], ["waiting", 0, 1, null]);
    assertAbout(job.runAt, later(await scene.now(), hour), "runAt");
    assert.deepEqual(
      (await scene.trail("a")).map(({ kind, attempt }) => ({ kind, attempt })),
      [{ kind: "snoozed", attempt: 1 }],
    );
  });

  test("a rollback is counted separately and uses up no attempt", async (scene) => {
    await scene.run(newJob("a"), { kind: "rollback", delayMs: minute, error: '"refused"' });
    const job = await scene.job("a");
    assert.deepEqual([job.state, job.attempt, job.rollbacks, job.error], ["waiting", 0, 1, '"refused"']);
    assert.equal((await scene.trail("a"))[0]?.kind, "rolled-back");
  });

  test("an at-most-once job whose end nobody knows is lost, with the reason", async (scene) => {
    await scene.run(newJob("a", { delivery: "at-most-once" }), lose);
    const job = await scene.job("a");
    assert.deepEqual([job.state, job.reason], ["lost", "nobody knows"]);
    assert.notEqual(job.finishedAt, null);
  });

  test("a crash that its holder tells of is counted apart from failures, and due at once", async (scene) => {
    await scene.run(newJob("a"), { kind: "crash", reason: "its thread died" });
    const job = await scene.job("a");
    assert.deepEqual([job.state, job.reason, job.crashes, job.attempt], ["waiting", "its thread died", 1, 1]);
    const claimer = scene.claimer("node-2");
    await claimer.one();
    assert.equal((await scene.job("a")).reason, null, "the reason of the last state is gone with it");
  });

  test("an outcome that the delivery does not allow is refused, and the whole batch with it", async (scene) => {
    await scene.add(newJob("a"), newJob("strict", { delivery: "at-most-once" }));
    const claimer = scene.claimer();
    const [a, strict] = await claimer.take();
    assert(a && strict);
    const finishes = [
      { id: "a", token: a.token, outcome: succeed },
      { id: "strict", token: strict.token, outcome: retry(0) },
    ];
    // Refused by the policy, and not by whatever breaks later.
    await assert.rejects(scene.store.finish({ claimer: claimer.id, finishes }), /at-most-once|strict/);
    assert.deepEqual(await scene.states("a", "strict"), ["active", "active"]);
  });
}

const outcomes: readonly Outcome[] = [succeed, retry(minute), die, { kind: "release" }];

export function staleTests(test: ConformanceTest): void {
  for (const outcome of outcomes) {
    test(`finishing twice with one token is one finish: ${outcome.kind}`, async (scene) => {
      await scene.add(newJob("a"));
      const claimer = scene.claimer();
      const claimed = await claimer.one();
      const first = await claimer.finish(claimed, outcome);
      const [job, trail] = [await scene.job("a"), await scene.trail("a")];
      await scene.advance(minute / 2);
      assert.deepEqual(await claimer.finish(claimed, outcome), { outcome: "repeated", state: first.state });
      assert.deepEqual(await claimer.finish(claimed, die), { outcome: "repeated", state: first.state });
      assert.deepEqual([await scene.job("a"), await scene.trail("a")], [job, trail]);
    });
  }

  test("the same finish twice in one batch is written once", async (scene) => {
    await scene.add(newJob("a"));
    const claimer = scene.claimer();
    const { id, token } = await claimer.one();
    const one = { id, token, outcome: succeed };
    const results = await scene.store.finish({ claimer: claimer.id, finishes: [one, one] });
    assert.deepEqual(
      results.map(({ outcome }) => outcome),
      ["written", "repeated"],
    );
  });

  test("a repeated finish is known as such also while the job runs again", async (scene) => {
    await scene.add(newJob("a"));
    const [one, two] = [scene.claimer("one"), scene.claimer("two")];
    const claimed = await one.one();
    await one.finish(claimed, retry(0));
    await two.one();
    assert.deepEqual(await one.finish(claimed, retry(0)), { outcome: "repeated", state: "active" });
  });

  test("a claimer with a name like the holder's, down to its length, is another all the same [A7]", async (scene) => {
    await scene.add(newJob("plain"));
    const job = await scene.claimer("node-1").one();
    const other = scene.claimer("node-2");
    for (const outcome of [
      succeed,
      retry(0),
      { kind: "release" },
      { kind: "die", reason: "no", error: "{}" },
    ] as const)
      assert.deepEqual(await other.finish(job, outcome), { outcome: "stale", state: "active" }, outcome.kind);
    assert.equal((await other.extend(job)).outcome, "stale");
    assert.equal((await scene.claimer("node-1").finish(job, succeed)).outcome, "written");
    assert.deepEqual(await other.finish(job, succeed), { outcome: "stale", state: "succeeded" });
  });

  test("a wrong claimer, a wrong token or an unknown id is stale and changes nothing [A7]", async (scene) => {
    await scene.add(newJob("a"));
    const claimer = scene.claimer();
    const claimed = await claimer.one();
    const before = await scene.job("a");
    const stale = { outcome: "stale", state: "active" };
    assert.deepEqual(await scene.claimer("thief").finish(claimed, succeed), stale);
    assert.deepEqual(await claimer.finish({ id: "a", token: 0 }, succeed), stale);
    assert.deepEqual(await claimer.finish({ id: "a", token: 2 }, succeed), stale);
    assert.deepEqual(await claimer.finish({ id: "b", token: 1 }, succeed), { outcome: "stale", state: null });
    assert.deepEqual(await scene.job("a"), before);
  });

  test("a claimer's own earlier claim cannot end its later one [A7]", async (scene) => {
    await scene.add(newJob("a"));
    const claimer = scene.claimer();
    const first = await claimer.one();
    await scene.advance(2 * leaseMs);
    await scene.reapAll();
    const second = await claimer.one();
    assert.deepEqual([first.token, second.token], [1, 2]);
    assert.deepEqual(await claimer.finish(first, succeed), { outcome: "stale", state: "active" });
    assert.equal((await claimer.extend(first)).outcome, "stale");
    assert.deepEqual(await claimer.finish(second, succeed), { outcome: "written", state: "succeeded" });
  });

  test("a worker that comes back after its lease was reaped cannot overwrite [A7]", async (scene) => {
    await scene.add(newJob("a"));
    const slow = scene.claimer("slow");
    const claimed = await slow.one();
    await scene.advance(2 * leaseMs);
    await scene.reapAll();
    assert.deepEqual(await slow.finish(claimed, succeed), { outcome: "stale", state: "waiting" });
    const quick = scene.claimer("quick");
    const again = await quick.one();
    assert.deepEqual(await slow.finish(claimed, succeed), { outcome: "stale", state: "active" });
    await quick.finish(again, succeed);
    assert.deepEqual(await slow.finish(claimed, die), { outcome: "stale", state: "succeeded" });
    assert.equal(await scene.stateOf("a"), "succeeded");
  });

  test("a finish after the lease ran out and before anybody reaped it is written", async (scene) => {
    await scene.add(newJob("a"));
    const claimer = scene.claimer();
    const claimed = await claimer.one();
    await scene.advance(2 * leaseMs);
    assert.equal((await claimer.finish(claimed, succeed)).outcome, "written");
    assert.deepEqual(await scene.reapAll(), []);
  });

  test("terminal states never regress [D7]", async (scene) => {
    await scene.run(newJob("done"), succeed);
    await scene.run(newJob("dead"), die);
    const claimer = scene.claimer("late");
    for (const id of ["done", "dead"]) {
      const before = await scene.job(id);
      assert.equal((await claimer.finish({ id, token: 1 }, retry(0))).outcome, "stale");
      assert.equal(await scene.cancel(id), "terminal");
      assert.equal((await scene.store.update({ id, input: "2" })).outcome, "refused");
      await scene.reapAll();
      assert.deepEqual(await scene.job(id), before);
    }
    assert.equal(await scene.redrive("done"), "refused");
  });

  test("an empty batch of finishes is no work and no error", async (scene) => {
    assert.deepEqual(await scene.store.finish({ claimer: "c", finishes: [] }), []);
    assert.deepEqual(await scene.store.extend({ claimer: "c", leaseMs, claims: [] }), []);
    await scene.store.report({ claimer: "c", reports: [] });
  });
}
