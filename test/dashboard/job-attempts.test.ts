import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JobStory } from "../../dashboard/src/api/answers.ts";
import { type Step, stepsOf, tookMs } from "../../dashboard/src/screens/job-attempts.ts";
import { shareOf } from "../../dashboard/src/screens/job-progress.ts";

type Job = JobStory["job"];
type Line = JobStory["trail"][number];

const at = (ms: number): string => new Date(1_800_000_000_000 + ms).toISOString();
const error = { name: "Error", message: "no" };

function line(kind: Line["kind"], ms: number, token: number, more: Partial<Line> = {}): Line {
  return { at: at(ms), kind, attempt: token, token, claimer: "n", text: null, error: null, ...more };
}

function job(more: Partial<Job>): Job {
  const some: Partial<Job> = {
    enqueuedAt: at(0),
    attempt: 1,
    token: 1,
    claimer: "n",
    claimedAt: at(0),
    finishedAt: null,
    state: "active",
    reason: null,
    error: null,
  };
  return { ...some, ...more } as Job;
}

function words(steps: readonly Step[]): string[] {
  return steps.map((step) =>
    step.kind === "event" ? step.what : `${step.attempt}: ${step.end?.what ?? "not ended"}`,
  );
}

describe("the story of a job", () => {
  test("in one millisecond a claim still comes before its failure, and the failure before the end", () => {
    const dead = job({ state: "dead", finishedAt: at(0), reason: "unrecoverable", error });
    const steps = stepsOf(dead, [line("failed", 0, 1, { error })]);
    assert.deepEqual(words(steps), ["enqueued", "1: failed", "dead"]);
  });

  test("one block for each attempt, with what it logged; the latest says how long it took", () => {
    const done = job({
      state: "succeeded",
      token: 2,
      attempt: 2,
      claimedAt: at(1_000),
      finishedAt: at(1_250),
    });
    const steps = stepsOf(done, [
      line("failed", 200, 1, { error }),
      line("log", 1_100, 2, { text: "half" }),
      line("log", 1_200, 2, { text: "all" }),
    ]);
    assert.deepEqual(words(steps), ["enqueued", "1: failed", "2: succeeded"]);
    const [, first, second] = steps;
    assert.ok(first?.kind === "attempt" && second?.kind === "attempt");
    assert.deepEqual([tookMs(first, 0), tookMs(second, 0)], [null, 250]);
    assert.deepEqual(
      second.lines.map(({ text }) => text),
      ["half", "all"],
    );
  });

  test("edits, notes and redrives stand between the attempts", () => {
    const running = job({ token: 2, attempt: 1, claimedAt: at(900) });
    const steps = stepsOf(running, [
      line("updated", 10, 0, { claimer: null }),
      line("failed", 200, 1, { error }),
      line("log", 500, 1, { claimer: null, text: "ada: the bank is back" }),
      line("redriven", 500, 1),
      line("cancel-requested", 950, 2, { attempt: 1 }),
    ]);
    assert.deepEqual(words(steps), [
      ...["enqueued", "updated", "1: failed", "noted", "redriven", "1: not ended"],
    ]);
    const last = steps.at(-1);
    assert.ok(last?.kind === "attempt");
    assert.equal(tookMs(last, Date.parse(at(1_000))), 100);
    assert.deepEqual(
      last.lines.map(({ kind }) => kind),
      ["cancel-requested"],
    );
  });

  test("a claim that left no line stands before what came after it", () => {
    const running = job({ state: "succeeded", claimedAt: at(100), finishedAt: at(300) });
    const steps = stepsOf(running, [line("noted", 400, 1, { claimer: null })]);
    assert.deepEqual(words(steps), ["enqueued", "1: succeeded", "noted"]);
  });
});

test("progress is a share, a percentage, or so many of so many", () => {
  const shares = [0.25, 25, { percent: 25 }, { done: 1, total: 4 }].map(shareOf);
  assert.deepEqual(shares, [0.25, 0.25, 0.25, 0.25]);
  const others = [-1, 400, { percent: "25" }, { percent: 130 }, { done: 1, total: 0 }, "25", null].map(
    shareOf,
  );
  assert.deepEqual(new Set(others), new Set([null]));
});
