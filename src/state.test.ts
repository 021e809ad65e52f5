import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type JobState, jobStates } from "./job.ts";
import { defaultBackoff } from "./retry.ts";
import {
  afterFailure,
  follow,
  type HeldJob,
  isFragile,
  isTerminal,
  type Outcome,
  settle,
  type Transition,
  transitions,
} from "./state.ts";

const held: HeldJob = {
  delivery: "at-least-once",
  attempt: 1,
  crashes: 0,
  maxCrashes: 3,
  cancelRequested: false,
  reason: null,
};

const everyOutcome: Outcome[] = [
  { kind: "succeed", result: "1" },
  { kind: "retry", delayMs: 10, error: "{}" },
  { kind: "snooze", delayMs: 10 },
  { kind: "release" },
  { kind: "rollback", delayMs: 10, error: "{}" },
  { kind: "die", reason: "why", error: "{}" },
  { kind: "lose", reason: "why" },
  { kind: "crash", reason: "why" },
];

describe("the transition table", () => {
  test("the terminal states are these", () => {
    assert.deepEqual(jobStates.filter(isTerminal).toSorted(), ["cancelled", "dead", "lost", "succeeded"]);
  });

  test("nothing leads out of a terminal state but a redrive out of dead and lost [D7]", () => {
    for (const state of jobStates.filter(isTerminal)) {
      const ways = Object.keys(transitions[state]);
      assert.deepEqual(ways, state === "dead" || state === "lost" ? ["redrive"] : []);
    }
  });

  test("every transition ends in a state that exists", () => {
    for (const from of jobStates) {
      for (const to of Object.values(transitions[from])) assert.ok(jobStates.includes(to));
    }
  });

  test("only an active job can end in succeeded, dead or lost", () => {
    for (const from of jobStates) {
      for (const to of Object.values(transitions[from])) {
        if (to === "succeeded" || to === "dead" || to === "lost") assert.equal(from, "active");
      }
    }
  });

  test("a step that is not in the table is refused", () => {
    assert.throws(() => follow("succeeded", "claim"), /a job that is succeeded cannot claim/);
    for (const transition of ["claim", "retry", "cancel", "redrive"] satisfies Transition[]) {
      assert.throws(() => follow("cancelled", transition));
    }
  });
});

describe("settle", () => {
  test("a requested cancel wins over every end but success [D7]", () => {
    for (const outcome of everyOutcome) {
      const { state } = settle({ ...held, cancelRequested: true }, outcome);
      assert.equal(state, outcome.kind === "succeed" ? "succeeded" : "cancelled", outcome.kind);
    }
  });

  test("an at-most-once job is never sent back once it was dispatched, only when it was not started [K8]", () => {
    const job: HeldJob = { ...held, delivery: "at-most-once" };
    for (const outcome of everyOutcome) {
      if (outcome.kind === "retry" || outcome.kind === "snooze" || outcome.kind === "rollback") {
        assert.throws(() => settle(job, outcome), /at-most-once/);
      } else {
        assert.equal(settle(job, outcome).state === "waiting", outcome.kind === "release", outcome.kind);
      }
    }
  });

  test("a crash loses an at-most-once job and repeats the others until they are poison", () => {
    const crash: Outcome = { kind: "crash", reason: "its lease ran out" };
    assert.equal(settle({ ...held, delivery: "at-most-once" }, crash).state, "lost");
    for (const delivery of ["at-least-once", "effectively-once"] as const) {
      const states: JobState[] = [0, 1, 2].map(
        (crashes) => settle({ ...held, delivery, crashes }, crash).state,
      );
      assert.deepEqual(states, ["waiting", "waiting", "dead"]);
    }
    assert.match(settle({ ...held, crashes: 2 }, crash).reason ?? "", /^poison/);
  });

  test("releases, snoozes and rollbacks use up no attempt, retries and crashes use up one", () => {
    const attempts = Object.fromEntries(everyOutcome.map((one) => [one.kind, settle(held, one).attempt]));
    assert.deepEqual(attempts, {
      succeed: 1,
      retry: 1,
      snooze: 0,
      release: 0,
      rollback: 0,
      die: 1,
      lose: 1,
      crash: 1,
    });
  });

  test("only a rollback is counted as a rollback", () => {
    for (const outcome of everyOutcome) {
      assert.equal(settle(held, outcome).rollbacks, outcome.kind === "rollback" ? 1 : 0);
    }
  });
});

describe("after a failure", () => {
  const failure = { error: "{}", unrecoverable: false };
  const job = { delivery: "at-least-once", attempt: 1, attempts: 3, crashes: 0 } as const;

  test("tries follow until they are used up, then the job is dead [A5]", () => {
    const kinds = [1, 2, 3].map(
      (attempt) => afterFailure({ ...job, attempt }, failure, defaultBackoff, 0.5).kind,
    );
    assert.deepEqual(kinds, ["retry", "retry", "die"]);
  });

  test("crashes use up no attempts", () => {
    assert.equal(
      afterFailure({ ...job, attempt: 4, crashes: 2 }, failure, defaultBackoff, 0.5).kind,
      "retry",
    );
    assert.equal(afterFailure({ ...job, attempt: 5, crashes: 2 }, failure, defaultBackoff, 0.5).kind, "die");
  });

  test("an at-most-once job that raises is dead at once, with its error [K8]", () => {
    const outcome = afterFailure(
      { ...job, delivery: "at-most-once" },
      { ...failure, error: '{"message":"no"}' },
      defaultBackoff,
      0.5,
    );
    assert.deepEqual(outcome, {
      kind: "die",
      reason: "failed, and at-most-once is never retried",
      error: '{"message":"no"}',
    });
  });

  test("an unrecoverable failure is the last one", () => {
    assert.equal(afterFailure(job, { ...failure, unrecoverable: true }, defaultBackoff, 0.5).kind, "die");
  });
});

test("a job is fragile when one more crash makes it poison, and never before its first", () => {
  assert.deepEqual(
    [0, 1, 2, 3].map((crashes) => isFragile({ crashes, maxCrashes: 3 })),
    [false, false, true, true],
  );
  assert.equal(isFragile({ crashes: 0, maxCrashes: 1 }), false);
});
