import { type Mutant, mutantsOf } from "../mutant.ts";

const shared = { file: "src/state.ts", tests: ["src/state.test.ts"] };

export const state: readonly Mutant[] = mutantsOf(shared, [
  ["a cancel wins over a success", '|| plain.state === "succeeded"', "|| false"],
  ["a cancel loses to every end", "if (!job.cancelRequested ||", "if (true ||"],
  [
    "a snooze counts as a try",
    'state: follow("active", "snooze"),\n        attempt: job.attempt - 1',
    'state: follow("active", "snooze"),\n        attempt: job.attempt',
  ],
  [
    "a release counts as a try",
    'state: follow("active", "release"),\n        attempt: job.attempt - 1',
    'state: follow("active", "release"),\n        attempt: job.attempt',
  ],
  [
    "a rollback counts as a try",
    'state: follow("active", "rollback"),\n        attempt: job.attempt - 1',
    'state: follow("active", "rollback"),\n        attempt: job.attempt',
  ],
  ["rollbacks are not counted", "rollbacks: 1,", "rollbacks: 0,"],
  [
    "a crash is not counted",
    "const crashes = Math.min(job.crashes, maxCount - 1) + 1",
    "const crashes = job.crashes",
  ],
  [
    "at-most-once is tried again after a crash",
    'if (job.delivery === "at-most-once") return { state: follow("active", "lose")',
    'if (false) return { state: follow("active", "lose")',
  ],
  ["poison comes a crash late", "if (crashes >= job.maxCrashes)", "if (crashes > job.maxCrashes)"],
  ["at-most-once may be sent back", 'assert(job.delivery !== "at-most-once"', "assert(true"],
  ["a job is never fragile", "job.crashes > 0 && job.crashes >= job.maxCrashes - 1", "false"],
  ["a job that never crashed is fragile", "job.crashes > 0 && job.crashes >=", "job.crashes >="],
  ["crashes count as failures", "const failures = job.attempt - job.crashes", "const failures = job.attempt"],
  [
    "at-most-once is retried after a failure",
    'if (job.delivery === "at-most-once") return die',
    "if (false) return die",
  ],
  ["an unrecoverable error is retried", "if (failure.unrecoverable)", "if (false)"],
  ["one try too many", "failures >= job.attempts", "failures > job.attempts"],
  ["a redrive leads out of succeeded", "succeeded: {},", 'succeeded: { redrive: "waiting" },'],
  ["a lost job cannot be redriven", 'lost: { redrive: "waiting" },', "lost: {},"],
  ["dead is no end", 'state === "dead" ||', "false ||"],
  ["a step that the table lacks is taken", "assert(next !== undefined,", "assert(true,"],
]);
