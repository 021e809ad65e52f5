import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { check } from "./checker.ts";
import type { History, Operation } from "./history.ts";
import { broken, clean, ended, enqueued, fault, history, killed, rules, run } from "./test/hand-made.ts";

describe("a history that keeps every promise is valid", () => {
  test("one run per job", () => {
    const verdict = check(
      history(clean("a", "at-most-once"), clean("b", "at-least-once"), clean("c", "effectively-once")),
    );
    assert.deepEqual(verdict.violations, []);
    assert.deepEqual(
      verdict.figures.map(({ jobs, dispatches, effects }) => [jobs, dispatches, effects]),
      [
        [1, 1, 0],
        [1, 1, 0],
        [1, 1, 1],
      ],
    );
  });

  test("a kill explains a second run, and the recovery is measured", () => {
    const verdict = check(history(killed("at-least-once")));
    assert.deepEqual(verdict.violations, []);
    assert.deepEqual(verdict.reruns, { count: 1, bound: 2 });
    assert.equal(verdict.recovery.maxMs, 1_165);
    const late = [...run("j", 1, 40, { claimedAtMs: 33 }), ...run("j", 2, 1_200, { node: "b", done: true })];
    assert.deepEqual(
      broken({ ...killed("at-least-once"), lines: late }),
      [],
      "it struck between claim and start",
    );
    const after = [...run("j", 1, 40, { claimedAtMs: 38 }), ...run("j", 2, 1_200, { node: "b", done: true })];
    assert.deepEqual(broken({ ...killed("at-least-once"), lines: after }), ["duplicated"]);
    assert.deepEqual(broken(killed("effectively-once")), []);
  });

  test("a failure that the script asks for explains a second run", () => {
    const operations = [enqueued("j", "at-least-once", { failures: 1 })];
    const lines = [...run("j", 1, 30, { how: "threw" }), ...run("j", 2, 150, { done: true })];
    const jobs = [ended("j", "at-least-once", { token: 2, resultToken: 2 })];
    assert.deepEqual(broken({ operations, lines, jobs }), []);
  });

  test("an at-most-once job that its node took down with it is given up", () => {
    const operations = [enqueued("j", "at-most-once")];
    const jobs = [ended("j", "at-most-once", { state: "lost", resultToken: null })];
    const lines = run("j", 1, 30, { endAtMs: null });
    assert.deepEqual(broken({ operations, jobs, lines, faults: [fault("kill", "a", 35)] }), []);
  });

  test("a call whose answer was lost may have happened, or not", () => {
    const operations = [enqueued("j", "at-least-once", { outcome: "info" })];
    assert.deepEqual(broken({ operations }), []);
    assert.deepEqual(broken({ ...clean("j", "at-least-once"), operations }), []);
  });

  test("a process that was held up between claim and first line may write it late", () => {
    const lines = [...run("j", 2, 1_500, { node: "b", done: true }), ...run("j", 1, 3_000)];
    const operations = [enqueued("j", "at-least-once")];
    const jobs = [ended("j", "at-least-once", { token: 2, resultToken: 2 })];
    assert.deepEqual(broken({ operations, lines, jobs, faults: [fault("pause", "a", 30, 2_990)] }), []);
  });
});

describe("each broken promise is called by its name", () => {
  test("lost: acknowledged and unknown", () => {
    assert.deepEqual(broken({ operations: [enqueued("j", "at-least-once")] }), ["lost"]);
  });

  test("lost: succeeded without a run that came to its end", () => {
    const lines = run("j", 1, 30, { endAtMs: null });
    assert.deepEqual(broken({ ...clean("j", "at-least-once"), lines }), ["lost"]);
  });

  test("lost: dead though nothing failed by script, or lost though nothing happened", () => {
    const dead = [ended("j", "at-least-once", { state: "dead", resultToken: null })];
    assert.deepEqual(broken({ ...clean("j", "at-least-once"), lines: run("j", 1, 30), jobs: dead }), [
      "lost",
    ]);
    const lost = [ended("j", "at-most-once", { state: "lost", resultToken: null })];
    assert.deepEqual(broken({ ...clean("j", "at-most-once"), lines: run("j", 1, 30), jobs: lost }), ["lost"]);
  });

  test("duplicated: a second run without a fault, or with one that struck another node, or in vain", () => {
    assert.deepEqual(broken({ ...killed("at-least-once"), faults: [] }), ["duplicated"]);
    assert.deepEqual(broken({ ...killed("at-least-once"), faults: [fault("kill", "b", 35)] }), [
      "duplicated",
    ]);
    assert.deepEqual(broken({ ...killed("at-least-once"), faults: [fault("clock", "a", 35)] }), [
      "duplicated",
    ]);
  });

  test("duplicated: any second run of an at-most-once job, whatever happened", () => {
    assert.deepEqual(broken(killed("at-most-once")), ["duplicated"]);
  });

  test("duplicated: more than faults times concurrency", () => {
    const parts = ["j1", "j2", "j3"].map((job): Partial<History> => {
      const lines = [...run(job, 1, 30, { endAtMs: null }), ...run(job, 2, 1_200, { node: "b", done: true })];
      const jobs = [ended(job, "at-least-once", { token: 2, resultToken: 2 })];
      return { operations: [enqueued(job, "at-least-once")], lines, jobs };
    });
    const verdict = check(history(...parts, { faults: [fault("kill", "a", 35)] }));
    assert.deepEqual(
      verdict.violations.map(({ detail }) => detail),
      ["3 jobs were dispatched again, and faults × concurrency allow 2"],
    );
  });

  test("duplicated: two committed effects", () => {
    const effects = [1, 2].map((token) => ({ job: "j", token }));
    assert.deepEqual(broken({ ...killed("effectively-once"), effects }), ["duplicated"]);
  });

  test("phantom: a run, a job or an effect that nobody asked for", () => {
    assert.deepEqual(broken({ lines: run("x", 1, 30) }), ["phantom"]);
    assert.deepEqual(broken({ jobs: [ended("x", "at-least-once")] }), ["phantom"]);
    assert.deepEqual(broken({ effects: [{ job: "x", token: 1 }] }), ["phantom"]);
  });

  test("early: before its delay, or before its backoff", () => {
    const operations = [enqueued("j", "at-least-once", { delayMs: 500 })];
    assert.deepEqual(broken({ ...clean("j", "at-least-once"), operations }), ["early"]);
    const failing = [enqueued("j", "at-least-once", { failures: 1 })];
    const lines = [...run("j", 1, 30, { how: "threw" }), ...run("j", 2, 60, { done: true })];
    const jobs = [ended("j", "at-least-once", { token: 2, resultToken: 2 })];
    assert.deepEqual(broken({ operations: failing, lines, jobs }), ["early"]);
  });

  test("duplicated: again after a success that was accepted, whatever happened since", () => {
    const lines = [...run("j", 1, 30, { done: true }), ...run("j", 2, 1_200, { node: "b" })];
    const parts = { ...killed("at-least-once"), lines, jobs: [ended("j", "at-least-once")] };
    assert.ok(broken(parts).includes("duplicated"));
  });

  test("stale-accepted: two successes, or a result of an earlier token", () => {
    const lines = [...run("j", 1, 30, { done: true }), ...run("j", 2, 1_200, { node: "b", done: true })];
    const twice = { ...killed("at-least-once"), lines, faults: [fault("pause", "a", 35, 1_300)] };
    assert.deepEqual(broken(twice), ["duplicated", "stale-accepted"]);
    const jobs = [ended("j", "at-least-once", { token: 2, resultToken: 1 })];
    const unacknowledged = [...run("j", 1, 30), ...run("j", 2, 1_200, { node: "b" })];
    assert.deepEqual(broken({ ...killed("at-least-once"), lines: unacknowledged, jobs }), ["stale-accepted"]);
  });

  test("stale-accepted: an effect of another token than the success", () => {
    const effects = [{ job: "j", token: 1 }];
    assert.deepEqual(broken({ ...killed("effectively-once"), effects }), ["stale-accepted"]);
    const withInbox = check({
      ...history({ ...killed("effectively-once"), effects }),
      rules: { ...rules, effectsWith: "inbox" },
    });
    assert.deepEqual(withInbox.violations, [], "an inbox keeps the first effect, whoever had it");
  });

  test("lost: succeeded without its effect", () => {
    assert.deepEqual(broken({ ...clean("j", "effectively-once"), effects: [] }), ["lost"]);
  });

  test("stuck: not ended", () => {
    const jobs = [ended("j", "at-least-once", { state: "active", resultToken: null })];
    assert.deepEqual(broken({ ...clean("j", "at-least-once"), lines: run("j", 1, 30), jobs }), ["stuck"]);
  });

  test("cancelled-ran: a confirmed cancel that did not hold", () => {
    const cancel: Operation = {
      kind: "cancel",
      job: "j",
      answer: "cancelled",
      invokedAtMs: 22,
      endedAtMs: 25,
      outcome: "ok",
    };
    const good = clean("j", "at-least-once");
    const operations = [...(good.operations ?? []), cancel];
    assert.deepEqual(broken({ ...good, operations }), ["cancelled-ran"]);
    const requested = [...(good.operations ?? []), { ...cancel, answer: "requested" } as const];
    assert.deepEqual(broken({ ...good, operations: requested }), [], "it was running, and came to its end");
    const faults = [fault("pause", "a", 23, 28)];
    assert.deepEqual(broken({ ...good, operations, faults }), ["cancelled-ran"]);
    const jobs = [ended("j", "at-least-once", { state: "cancelled", token: 1, resultToken: null })];
    const lines = run("j", 1, 30);
    assert.deepEqual(broken({ operations, faults, jobs, lines }), [], "held up since its old claim");
    const unclaimed = [ended("j", "at-least-once", { state: "cancelled", token: 0, resultToken: null })];
    assert.deepEqual(broken({ operations, faults, jobs: unclaimed, lines }), ["cancelled-ran"]);
  });

  test("lost: cancelled by nobody, unless the answer to a cancel was lost on its way", () => {
    const jobs = [ended("j", "at-least-once", { state: "cancelled", token: 0, resultToken: null })];
    const cancel = { kind: "cancel", job: "j", answer: "terminal", outcome: "ok" } as const;
    const times = { invokedAtMs: 22, endedAtMs: 500 };
    const operations = [enqueued("j", "at-least-once"), { ...cancel, ...times }];
    assert.deepEqual(broken({ operations, jobs }), ["lost"]);
    assert.deepEqual(broken({ operations, jobs, faults: [fault("network", null, 30, 400)] }), []);
    assert.deepEqual(broken({ operations, jobs, faults: [fault("kill", "a", 30)] }), ["lost"]);
  });

  test("token: one used twice", () => {
    const lines = [...run("j", 1, 30), ...run("j", 1, 31, { node: "b", done: true })];
    assert.deepEqual(broken({ ...clean("j", "at-most-once"), lines }), ["duplicated", "token"]);
  });

  test("slow: a recovery that took longer than lease, poll and a second", () => {
    const lines = [...run("j", 1, 30, { endAtMs: null }), ...run("j", 2, 3_000, { node: "b", done: true })];
    assert.deepEqual(broken({ ...killed("at-least-once"), lines }), ["slow"]);
    const again = [fault("kill", "a", 35), fault("kill", "c", 1_500)];
    assert.deepEqual(
      broken({ ...killed("at-least-once"), lines, faults: again }),
      [],
      "another came between",
    );
    const later = [fault("kill", "a", 35), fault("kill", "c", 4_000)];
    assert.deepEqual(broken({ ...killed("at-least-once"), lines, faults: later }), ["slow"]);
  });
});
