import assert from "node:assert/strict";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { createEscapement, defineJob } from "../src/index.ts";
import { silentLogger } from "../src/log.ts";
import { configure, escapement } from "./command.ts";
import { scratchFolder } from "./scratch.ts";
import { noTerminal, onTerminal, plainText } from "./terminal.ts";

const later = defineJob<number>({ name: "later" });
const other = defineJob<number>({ name: "other" });

describe("jobs edit with a filter [K12]", () => {
  const folder = scratchFolder("edit");
  const options = { store: `sqlite:${join(folder, "app.db")}`, jobs: [later, other], log: silentLogger };
  const edit = (...args: string[]) => escapement(folder, "jobs", "edit", ...args);
  before(async () => {
    configure(folder, 'defineJob({ name: "later" }), defineJob({ name: "other" })');
    await using app = createEscapement(options);
    for (const job of [later, other])
      await app.enqueueMany(
        job,
        Array.from({ length: 3 }, (_, n) => ({ input: n, id: `${job.name}-${n}`, delay: "3h" as const })),
      );
  });

  /** How many jobs of that name have each priority. */
  async function priorities(name: string): Promise<number[]> {
    await using app = createEscapement(options);
    const { jobs } = await app.list({ names: [name] }, { limit: 10 });
    return jobs.map(({ priority }) => priority).toSorted();
  }

  test("it counts, asks for a yes, and sets the priority of all that match", async () => {
    const dry = await edit("--name", "later", "--priority", "7", "--dry-run");
    assert.deepEqual([dry.code, dry.stdout], [0, "3 jobs would be changed\n"], dry.stderr);
    const unsure = await edit("--name", "later", "--priority", "7");
    assert.deepEqual([unsure.code, unsure.stdout], [2, ""]);
    assert.match(unsure.stderr, /This will set the priority of 3 jobs to 7\. Pass --yes to do it/);
    assert.deepEqual(await priorities("later"), [0, 0, 0], "nothing has changed so far");
    const done = await edit("--name", "later", "--priority", "7", "--yes", "--json", "--actor", "carol");
    const { action, matched, outcomes } = JSON.parse(done.stdout);
    assert.deepEqual([done.code, action, matched, outcomes], [0, "priority", 3, { updated: 3 }], done.stderr);
    assert.deepEqual(await priorities("later"), [7, 7, 7]);
    assert.deepEqual(await priorities("other"), [0, 0, 0], "the others are as they were");
    const audit = await escapement(folder, "audit", "--json", "--actor", "carol");
    assert.match(audit.stdout, /"action":"priority-all"/);
  });

  test("it asks on a terminal, and shows a bar", { skip: noTerminal }, async () => {
    const args = ["jobs", "edit", "--name", "other", "--priority", "-2"];
    const no = await onTerminal(folder, args, { type: [[/\[y\/N\] /, "n\r"]] });
    assert.deepEqual([no.code, /nothing was changed/.test(no.output)], [1, true], no.output);
    assert.deepEqual(await priorities("other"), [0, 0, 0]);
    const yes = await onTerminal(folder, args, { type: [[/\[y\/N\] /, "y\r"]] });
    assert.match(plainText(yes.output), /\[█*░*\] changing: \d jobs? of 3/);
    assert.match(yes.output, /3 changed\n$/);
    assert.deepEqual(await priorities("other"), [-2, -2, -2]);
  });

  test("one job is edited by its id, which is counted too", async () => {
    const dry = await edit("later-1", "--delay", "5h", "--dry-run");
    assert.deepEqual([dry.code, dry.stdout], [0, "1 job would be changed\n"], dry.stderr);
    const none = await edit("nobody", "--delay", "5h", "--dry-run");
    assert.deepEqual([none.code, none.stdout], [0, "no job matches\n"], none.stderr);
  });

  test("what cannot be meant is refused", async () => {
    const cases: [string[], RegExp][] = [
      [["--priority", "1"], /expected the id of a job, or a filter.*and got neither/],
      [["later-1", "--name", "later", "--priority", "1"], /and not both/],
      [["--name", "later"], /expected something to change/],
      [["--name", "later", "--delay", "1h"], /expected --priority and nothing else with a filter/],
      [["--name", "later", "--priority", "1", "--at", "2030-01-01T00:00:00Z"], /and nothing else/],
    ];
    for (const [args, expected] of cases) {
      const { code, stderr } = await edit(...args);
      assert.deepEqual([code, expected.test(stderr)], [2, true], `${args.join(" ")}: ${stderr}`);
    }
  });

  test("the completion offers the filters", async () => {
    const { stdout } = await escapement(folder, "completion", "bash");
    const line = stdout.split("\n").find((one) => one.includes("'jobs edit'") && one.includes("--"));
    assert.match(line ?? stdout, /--fingerprint.*--yes.*--priority/);
  });
});
