import { type Mutant, mutantsOf } from "../mutant.ts";

const pattern = "(memory)";
const behaviour = (...names: string[]): string[] => names.map((name) => `test/behaviour/${name}.test.ts`);

export const roles: readonly Mutant[] = [
  ...mutantsOf({ file: "src/worker/claimer.ts", tests: behaviour("fragile", "worker", "faults"), pattern }, [
    [
      "an unanswered claim is not repeated",
      "if (this.#unanswered !== null) return this.#unanswered.claim;",
      "",
    ],
    [
      "an unanswered claim is repeated for ever",
      "this.#unanswered = null;\n        this.#receive",
      "this.#receive",
    ],
    [
      "a loop ends with outcomes unwritten",
      "return this.#parts.outbox.isEmpty && this.#unanswered === null;",
      "return this.#unanswered === null;",
    ],
    [
      "more is claimed than there is room for",
      "Math.min(settings.concurrency - running, settings.batch)",
      "settings.batch",
    ],
    ["a failed trip forgets its outcomes", "else outbox.putBack(sending);", ""],
    ["a fragile job gets neighbours", "if (this.#exclusive !== null ||", "if ("],
    ["a stopping process claims", "if (!this.#claiming || !wanted", "if (!wanted"],
  ]),
  ...mutantsOf({ file: "src/worker/claimer.ts", tests: behaviour("look-ahead"), pattern: "(memory)" }, [
    ["jobs are never claimed ahead", "if (lacking <= 0) return 0;", "return 0;"],
  ]),
  ...mutantsOf({ file: "src/worker/worker.ts", tests: behaviour("look-ahead"), pattern: "(memory)" }, [
    [
      "a pause does not reach what was claimed ahead",
      'if (notice.kind === "queues" && this.#ready.giveBack(() => true) > 0)',
      "if (false)",
    ],
    [
      "a stop keeps what was claimed ahead",
      "this.#claimer.stopClaiming();\n    this.#ready.stop();",
      "this.#claimer.stopClaiming();",
      { equivalent: "nothing is started any more, and what waits goes back after 100 ms" },
    ],
    [
      "an answer that comes while stopping waits for room",
      "if (this.#stopping) this.#ready.stop();\n    else if (this.#mayStartAny)",
      "if (this.#mayStartAny)",
      { equivalent: "nothing is started any more, and what waits goes back after 100 ms" },
    ],
    [
      "a cancelled job that waits for room is started",
      "this.#ready.giveBack((held) => held.stopCause !== null);",
      "",
      { equivalent: "its turn comes within 100 ms, and then it is not started" },
    ],
  ]),
  ...mutantsOf({ file: "src/worker/ready.ts", tests: behaviour("look-ahead"), pattern: "(memory)" }, [
    ["what finds no room is kept", "claimedAtMs <= before", "false"],
  ]),
  ...mutantsOf({ file: "src/claims/outbox.ts", tests: behaviour("reports"), pattern: "(sqlite)" }, [
    ["outcomes go before their reports", "if (reports !== null && !reports.isIdle) {", "if (false) {"],
  ]),
  ...mutantsOf({ file: "src/claims/outbox.ts", tests: behaviour("worker", "faults"), pattern }, [
    [
      "what was sent is lost where no answer came",
      "this.#waiting = [...sending.entries, ...this.#waiting];",
      "",
    ],
    [
      "an outcome that cannot be written is kept for ever",
      "if (sending.entries.length === 1 && only !== undefined)",
      "if (false && only !== undefined)",
    ],
    [
      "what is on its way counts as written",
      "this.#waiting.length === 0 && this.#underWay.size === 0",
      "this.#waiting.length === 0",
      {
        equivalent: "a loop that is to end waits for its trips first, and then nothing is on its way",
      },
    ],
  ]),
  ...mutantsOf({ file: "src/relay/verdict.ts", tests: ["src/relay/verdict.test.ts"] }, [
    [
      "an ambiguous at-most-once publish is repeated",
      'if (job.delivery === "at-most-once") {\n      return { kind: "lose", reason: `whether',
      'if (false) {\n      return { kind: "lose", reason: `whether',
    ],
    [
      "a refused at-most-once publish is repeated",
      'if (job.delivery === "at-most-once")\n    return { kind: "die"',
      'if (false)\n    return { kind: "die"',
    ],
    ["a permanent refusal is repeated", "if (result.permanent)", "if (false)"],
    [
      "at-most-once is published again after a takeover",
      'if (job.delivery === "at-most-once") {\n    return',
      "if (false) {\n    return",
    ],
    [
      "a cancelled job is published after a takeover",
      "return job.cancelRequested || !isKnown",
      "return !isKnown",
    ],
    [
      "a receiver's wish to wait is ignored",
      "Math.max(ownMs, Math.min(retryAfterMs, longestRetryAfterMs))",
      "ownMs",
    ],
    ["a receiver may stop a job for ever", "Math.min(retryAfterMs, longestRetryAfterMs)", "retryAfterMs"],
  ]),
  ...mutantsOf(
    {
      file: "src/relay/partition.ts",
      tests: behaviour("relay-giving-back", "relay", "relay-ownership"),
      pattern,
    },
    [
      ["a relay ignores that its epoch is stale", 'if (answer.outcome === "stale") this.lose();', ""],
      [
        "a partition is over while publishes are unanswered",
        "return this.#inFlight.size === 0 && this.#inFlight.outbox.waiting === 0 &&",
        "return this.#inFlight.outbox.waiting === 0 &&",
      ],
      [
        "a partition is over with settlements unwritten",
        "this.#inFlight.size === 0 && this.#inFlight.outbox.waiting === 0 &&",
        "true &&",
      ],
      [
        "what was asked and not answered is forgotten",
        "if (this.#unanswered.size > 0) return [...this.#unanswered.values()];",
        "",
      ],
    ],
  ),
  ...mutantsOf({ file: "src/relay/in-flight.ts", tests: ["src/relay/in-flight.test.ts"] }, [
    [
      "what was named is published twice when an answer is repeated",
      "if (this.#jobs.get(job.id)?.job.token === job.token) continue;",
      "",
      {
        equivalent:
          "the reader offers nothing that is in flight, so no answer names it; a second line of defence",
      },
    ],
    [
      "a job that is no longer ours is published again",
      'if (!isOurs || this.#state !== "open")',
      'if (this.#state !== "open")',
    ],
    [
      "a rollback is written beside the publish that replaces it",
      "this.outbox.withdraw((named) => overdue.includes(named));",
      "",
    ],
    [
      "what is decided takes up room",
      "filter(({ decidedAtMs }) => decidedAtMs === null)",
      "filter(() => true)",
    ],
  ]),
  ...mutantsOf(
    { file: "src/relay/ownership.ts", tests: behaviour("relay-giving-back", "relay-ownership"), pattern },
    [
      [
        "a partition is released while a broker owes an answer",
        "!partition.isLost && partition.inFlight === 0",
        "!partition.isLost",
      ],
      ["a stale renewal is ignored", "else partition.lose();", ""],
    ],
  ),
];
