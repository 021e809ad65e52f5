import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Cause, CauseCode, CauseFields } from "../diagnosis/cause.ts";
import { sentenceOf } from "../diagnosis/sentence.ts";
import { commandFor } from "../runtime/shell-word.ts";
import { here } from "./app.ts";
import { assertParses, assertPasteable, commandIn, shellWords } from "./test/advised-command.ts";

const at = new Date(0);
const error = { name: "Error", message: "it broke" };

/** Names that a careless command would break apart. */
const names = ["plain", "two words", "it's", "-dash", "$(rm -rf x)", 'a"b', "日本", "a;b"];

function samples(name: string): CauseFields {
  const due = { runAt: at, inMs: 5 };
  const window = { until: at, inMs: 5, perMs: 1_500 };
  return {
    "due-later": due,
    backoff: { failures: 1, attempts: 5, error, ...due },
    snoozed: due,
    expired: { expireAt: at },
    parents: { parents: [{ id: name, state: "waiting" }], count: 1 },
    "queue-paused": { queue: name },
    "no-handler": { name, alive: 0, silent: null },
    "queue-not-served": { name, queue: name, nodes: ["n"] },
    "queue-concurrency": { queue: name, limit: 2, active: 2 },
    "queue-rate": { queue: name, limit: 2, ...window },
    "key-concurrency": { name, key: name, limit: 1, active: 1, jobs: [name] },
    "key-rate": { name, key: name, limit: 1, used: 1, ...window },
    "runs-alone": { crashes: 2, maxCrashes: 3 },
    "all-slots-busy": { nodes: 1, slots: 10 },
    "no-relay": { name, relays: 0, silent: null },
    "partition-without-owner": { partition: 1 },
    "owner-without-route": { name, partition: 1, owner: "n" },
    "destination-refuses": { rollbacks: 1, error, ...due },
    "next-in-line": { relayed: false },
    running: { claimer: "n", since: at, forMs: 5 },
    publishing: { claimer: "n", since: at, forMs: 5 },
    "cancel-requested": { claimer: "n" },
    "claimer-silent": { claimer: "n", seenAt: at, delivery: "at-most-once", reapers: 0 },
    "owner-changed": { claimer: "n", delivery: "at-least-once" },
  };
}

describe("whatever is advised can be pasted", () => {
  test("the command of each reason why a job waits is one of ours, whatever the job is called", () => {
    for (const name of names) {
      const fields = samples(name);
      for (const code of Object.keys(fields) as CauseCode[]) {
        const { advice } = sentenceOf({ code, ...fields[code] } as Cause, { id: name });
        assertPasteable(advice);
        const words = commandIn(advice);
        if (words !== null) assert(words.includes(name), `${advice} names ${name}`);
      }
    }
  });

  test("a command goes to the store that was asked, also about something that begins with a dash", () => {
    const flags = { store: "sqlite:my app.db", namespace: "n" };
    const words = commandIn(here(`to run it: ${commandFor("jobs run-now", "-x")}`, flags)) ?? [];
    assertParses(words);
    assert.deepEqual(words, [
      "jobs",
      "run-now",
      "--store",
      "sqlite:my app.db",
      "--namespace",
      "n",
      "--",
      "-x",
    ]);
    assert.equal(here("wait", flags), "wait");
    const secret = here(commandFor("queues resume", "q"), { store: "postgres://ann:pass@db/app" });
    assert.equal(secret, "escapement queues resume q", "a login is not repeated");
  });

  test("every command that a page names is one, to its last option", () => {
    const root = join(import.meta.dirname, "../..");
    const lines = globSync("{README.md,docs/*.md}", { cwd: root }).flatMap((file) => {
      const text = readFileSync(join(root, file), "utf8");
      return [
        ...text.matchAll(
          /^(?:\$ )?(?:npx )?escapement ([a-z][^#\n|>&…]*)|`(?:npx )?escapement ([a-z][^`…<]*)`/gm,
        ),
      ].map(([, line, span]) => ({ file, command: (line ?? span ?? "").trim() }));
    });
    assert(lines.length > 10);
    for (const { file, command } of lines) {
      // A command without its arguments stands for itself.
      const words = shellWords(command);
      assert.doesNotThrow(() => assertParses(words, false), `${file}: escapement ${command}`);
    }
  });
});
