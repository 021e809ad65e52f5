import assert from "node:assert/strict";
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

export function cancelTests(test: ConformanceTest): void {
  test("a waiting job is cancelled at once, with its reason, and never claimed", async (scene) => {
    await scene.add(newJob("a"));
    assert.equal(await scene.cancel("a", "not wanted"), "cancelled");
    const job = await scene.job("a");
    assert.deepEqual([job.state, job.reason, job.cancelRequested], ["cancelled", "not wanted", false]);
    assertAbout(job.finishedAt, await scene.now(), "finishedAt");
    assert.deepEqual(await scene.claimer().ids(), []);
    assert.equal(await scene.cancel("a"), "terminal");
    assert.equal((await scene.job("a")).reason, "not wanted");
  });

  test("an active job is asked, once in its trail however often it is repeated", async (scene) => {
    await scene.add(newJob("a"));
    await scene.claimer().one();
    assert.equal(await scene.cancel("a", "stop it"), "requested");
    assert.equal(await scene.cancel("a", "stop it"), "requested");
    const job = await scene.job("a");
    assert.deepEqual([job.state, job.cancelRequested], ["active", true]);
    assert.deepEqual(
      (await scene.trail("a")).map(({ kind, text, token }) => ({ kind, text, token })),
      [{ kind: "cancel-requested", text: "stop it", token: 1 }],
    );
  });

  test("a success that still comes after a cancel wins; it ends in exactly one of the two [D7]", async (scene) => {
    await scene.add(newJob("a"));
    const claimer = scene.claimer();
    const claimed = await claimer.one();
    await scene.cancel("a");
    assert.deepEqual(await claimer.finish(claimed, { kind: "succeed", result: "1" }), {
      outcome: "written",
      state: "succeeded",
    });
    assert.equal(await scene.cancel("a"), "terminal");
    assert.equal((await scene.job("a")).result, "1");
  });

  for (const outcome of [retry(0), die, { kind: "release" }, { kind: "crash", reason: "gone" }] as const) {
    test(`a job that was asked to stop and ends by ${outcome.kind} is cancelled for good [D7, A7]`, async (scene) => {
      await scene.add(newJob("a"));
      const claimer = scene.claimer();
      const claimed = await claimer.one();
      await scene.cancel("a");
      assert.equal((await claimer.finish(claimed, outcome)).state, "cancelled");
      assert.deepEqual(await claimer.finish(claimed, succeed), { outcome: "repeated", state: "cancelled" });
      assert.deepEqual(await claimer.ids(), []);
    });
  }

  test("the reason given for an active job's cancel is its reason, until a success makes it void", async (scene) => {
    await scene.add(newJob("a"), newJob("b"), newJob("c"), newJob("d"));
    const claimer = scene.claimer();
    const taken = await claimer.take();
    const [a, b, c, d] = ["a", "b", "c", "d"].map((wanted) => taken.find(({ id }) => id === wanted));
    assert(a && b && c && d);
    for (const id of ["a", "c", "d"]) await scene.cancel(id, `enough of ${id}`);
    await scene.cancel("a", "a second thought");
    await scene.cancel("b");
    assert.equal((await scene.job("a")).reason, "enough of a");
    await claimer.finish(a, retry(hour));
    await claimer.finish(b, retry(hour));
    await claimer.finish(c, succeed);
    assert.equal((await scene.job("a")).reason, "enough of a", "the first reason stays");
    assert.equal((await scene.job("b")).reason, "cancelled while active");
    assert.equal((await scene.job("c")).reason, null);
    await scene.advance(2 * leaseMs);
    const { reaped } = await scene.store.reap({ limit: 10 });
    assert.deepEqual(
      reaped.map(({ id, state, reason }) => [id, state, reason]),
      [["d", "cancelled", "enough of d"]],
    );
  });

  test("cancelling by filter takes what matches and could change, the oldest first, page by page", async (scene) => {
    await scene.run(newJob("done", { tags: ["t"] }), succeed);
    await scene.add(
      ...["a", "b", "c"].map((id) => newJob(id, { tags: ["t"], delayMs: hour })),
      newJob("other"),
    );
    const select = { filter: { tags: ["t"] }, limit: 2, cursor: null };
    const first = await scene.store.cancel({ select, reason: null });
    assert.deepEqual(first.results, [
      { id: "a", outcome: "cancelled" },
      { id: "b", outcome: "cancelled" },
    ]);
    assert(first.cursor);
    const second = await scene.store.cancel({ select: { ...select, cursor: first.cursor }, reason: null });
    assert.deepEqual(second.results, [{ id: "c", outcome: "cancelled" }]);
    assert.equal(await scene.stateOf("other"), "waiting");
  });

  test("ids are answered in their order, unknown ones and repeats among them", async (scene) => {
    await scene.add(newJob("p"), newJob("c", { after: ["p"] }));
    const { results } = await scene.store.cancel({
      select: { ids: ["nobody", "p", "p", "c"] },
      reason: null,
    });
    assert.deepEqual(
      results.map(({ outcome }) => outcome),
      ["unknown", "cancelled", "terminal", "terminal"],
    );
    assert.deepEqual(await scene.store.cancel({ select: { ids: [] }, reason: null }), {
      results: [],
      cursor: null,
    });
  });
}

export function updateTests(test: ConformanceTest): void {
  test("a waiting job takes a new input, time, priority and keys, and its version rises", async (scene) => {
    await scene.add(newJob("a", { expireInMs: hour }));
    const before = await scene.job("a");
    const runAt = later(before.runAt, 2 * hour);
    const changes = { input: '"new"', runAt, priority: -3, concurrencyKey: "c", rateKey: "r" };
    assert.deepEqual(await scene.store.update({ id: "a", ...changes }), {
      outcome: "updated",
      state: "waiting",
    });
    assert.deepEqual(await scene.job("a"), {
      ...before,
      ...changes,
      fireAt: runAt,
      expireAt: later(runAt, hour),
      version: 2,
    });
    assert.equal((await scene.trail("a"))[0]?.kind, "updated");
  });

  test("what is left out stays, and null takes a key away", async (scene) => {
    await scene.add(newJob("a", { concurrencyKey: "c", rateKey: "r" }));
    const before = await scene.job("a");
    await scene.store.update({ id: "a", rateKey: null });
    assert.deepEqual(await scene.job("a"), { ...before, rateKey: null, version: 2 });
  });

  test("a delay counts from now, and a job made due is claimed", async (scene) => {
    await scene.add(newJob("a", { delayMs: 9 * hour }));
    await scene.store.update({ id: "a", delayMs: hour });
    assertAbout((await scene.job("a")).runAt, later(await scene.now(), hour));
    await scene.store.update({ id: "a", delayMs: 0 });
    assert.deepEqual(await scene.claimer().ids(), ["a"]);
  });

  test("an occurrence keeps its nominal time", async (scene) => {
    const fireAt = later(await scene.now(), -minute);
    await scene.add(newJob("a", { schedule: "s", fireAt }));
    await scene.store.update({ id: "a", delayMs: hour });
    assert.deepEqual((await scene.job("a")).fireAt, fireAt);
  });

  test("a blocked job may be changed; an active or terminal one is refused, an unknown one unknown", async (scene) => {
    await scene.add(newJob("p"), newJob("c", { after: ["p"] }));
    assert.deepEqual(await scene.store.update({ id: "c", input: "2" }), {
      outcome: "updated",
      state: "blocked",
    });
    const claimer = scene.claimer();
    const claimed = await claimer.one();
    assert.deepEqual(await scene.store.update({ id: "p", input: "2" }), {
      outcome: "refused",
      state: "active",
    });
    await claimer.finish(claimed, succeed);
    assert.deepEqual(await scene.store.update({ id: "p", input: "2" }), {
      outcome: "refused",
      state: "succeeded",
    });
    assert.deepEqual(await scene.store.update({ id: "x", input: "2" }), { outcome: "unknown", state: null });
    assert.equal((await scene.job("p")).input, '{"n":1}');
  });
}

export function redriveTests(test: ConformanceTest): void {
  test("a dead job goes back to waiting with a fresh count, and keeps its history [C5]", async (scene) => {
    await scene.run(newJob("a", { expireInMs: minute }), die);
    const before = await scene.job("a");
    await scene.advance(hour);
    assert.equal(await scene.redrive("a", "mended"), "redriven");
    const job = await scene.job("a");
    assertAbout(job.runAt, await scene.now(), "runAt");
    assert.deepEqual(job, {
      ...before,
      state: "waiting",
      runAt: job.runAt,
      attempt: 0,
      crashes: 0,
      reason: null,
      expireAt: null,
      finishedAt: null,
      redrives: 1,
    });
    assert.deepEqual(
      (await scene.trail("a")).map(({ kind, attempt, text }) => ({ kind, attempt, text })),
      [
        { kind: "failed", attempt: 1, text: "no use" },
        { kind: "redriven", attempt: 1, text: "mended" },
      ],
    );
    const again = await scene.claimer("next").one();
    assert.deepEqual([again.attempt, again.token, again.redrives], [1, 2, 1]);
  });

  test("a lost job is redriven by a person only, and then runs", async (scene) => {
    await scene.run(newJob("a", { delivery: "at-most-once" }), lose);
    assert.equal(await scene.redrive("a"), "redriven");
    assert.deepEqual(await scene.claimer().ids(), ["a"]);
  });

  test("redriving is idempotent: a repeat finds nothing to redrive [C5]", async (scene) => {
    await scene.run(newJob("a"), die);
    assert.equal(await scene.redrive("a"), "redriven");
    assert.equal(await scene.redrive("a"), "refused");
    assert.equal((await scene.job("a")).redrives, 1);
  });

  test("what is neither dead nor lost is refused, unknown is unknown", async (scene) => {
    await scene.run(newJob("done"), succeed);
    await scene.add(newJob("waits", { delayMs: hour }), newJob("gone", { delayMs: hour }));
    await scene.cancel("gone");
    const { results } = await scene.store.redrive({
      select: { ids: ["done", "waits", "gone", "nobody"] },
      reason: null,
    });
    assert.deepEqual(
      results.map(({ outcome }) => outcome),
      ["refused", "refused", "refused", "unknown"],
    );
  });

  test("all that match are redriven, oldest first, page by page; listing shows them with reasons [C5]", async (scene) => {
    for (const id of ["a", "b", "c"]) await scene.run(newJob(id), die);
    await scene.run(newJob("done"), succeed);
    const { jobs } = await scene.store.list({
      filter: { states: ["dead"] },
      limit: 10,
      order: "oldest",
      cursor: null,
    });
    assert.deepEqual(
      jobs.map(({ id, reason }) => ({ id, reason })),
      ["a", "b", "c"].map((id) => ({ id, reason: "no use" })),
    );
    const select = { filter: { names: ["work"] }, limit: 2, cursor: null };
    const first = await scene.store.redrive({ select, reason: null });
    assert.deepEqual(
      first.results.map(({ id }) => id),
      ["a", "b"],
    );
    const rest = await scene.store.redrive({ select: { ...select, cursor: first.cursor }, reason: null });
    assert.deepEqual(rest.results, [{ id: "c", outcome: "redriven" }]);
  });

  test("a redrive is held while another job has its unique key, and takes the key again when it is free", async (scene) => {
    const unique = { key: "k", forMs: null };
    await scene.run(newJob("a", { unique }), die);
    await scene.add(newJob("b", { unique }));
    assert.equal(await scene.redrive("a"), "held");
    assert.equal(await scene.stateOf("a"), "dead");
    await scene.cancel("b");
    assert.equal(await scene.redrive("a"), "redriven");
    assert.deepEqual(await scene.add(newJob("c", { unique })), [{ id: "a", outcome: "absorbed" }]);
  });

  test("of two dead jobs with one unique key only the first is redriven", async (scene) => {
    const unique = { key: "k", forMs: null };
    await scene.run(newJob("a", { unique }), die);
    await scene.run(newJob("b", { unique }), die);
    const { results } = await scene.store.redrive({ select: { ids: ["b", "a"] }, reason: null });
    assert.deepEqual(
      results.map(({ outcome }) => outcome),
      ["redriven", "held"],
    );
  });

  test("the token of before a redrive is worth nothing after it", async (scene) => {
    await scene.add(newJob("a", { delivery: "at-most-once" }));
    const slow = scene.claimer("slow");
    const claimed = await slow.one();
    await scene.advance(2 * leaseMs);
    await scene.reapAll();
    await scene.redrive("a");
    assert.deepEqual(await slow.finish(claimed, succeed), { outcome: "stale", state: "waiting" });
  });
}
