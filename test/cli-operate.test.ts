import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { systemClock } from "../src/clock.ts";
import { type HistoryEntry, noFigures } from "../src/history.ts";
import { createEscapement, defineJob, type EscapementOptions, type HandlerContext } from "../src/index.ts";
import { deliveries, jobStates } from "../src/job.ts";
import { silentLogger } from "../src/log.ts";
import { sqlite } from "../src/stores/sqlite/index.ts";
import { testbed } from "../testbed/index.ts";
import { configure, escapement } from "./command.ts";
import { scratchFolder } from "./scratch.ts";
import { noTerminal, onTerminal, plainText } from "./terminal.ts";

const mail = defineJob<{ to: number }>({
  name: "mail",
  queue: "post",
  retry: { attempts: 1 },
  run: ({ input }: HandlerContext<{ to: number }>) => {
    if (input.to % 3 === 0) throw new RangeError(`no route to host ${input.to}`);
    if (input.to % 3 === 1) throw new Error(`mailbox "user${input.to}" is full`);
  },
});
const report = defineJob<{ month: number }>({ name: "report", run: () => {} });

/** Thirty mails of which ten each failed in two ways, and reports that wait. */
async function furnish(options: EscapementOptions): Promise<void> {
  await using app = createEscapement({ ...options, jobs: [mail, report], log: silentLogger });
  await app.enqueueMany(
    mail,
    Array.from({ length: 30 }, (_, n) => ({
      input: { to: n },
      id: `mail-${n}`,
      tags: n === 3 ? ["vip"] : [],
    })),
  );
  await app.start();
  while ((await app.count({ states: ["waiting", "active"] })) > 0)
    await new Promise((resolve) => setTimeout(resolve, 20));
  await app.enqueueMany(
    report,
    Array.from({ length: 6 }, (_, n) => ({ input: { month: n }, id: `report-${n}`, delay: "3h" as const })),
  );
  await app.schedule("nightly", { cron: "0 3 * * *" }, report, { month: 1 });
}

const numbers = `{ "~standard": { version: 1, vendor: "test",
  validate: (value) => typeof value.n === "number" ? { value } : { issues: [{ message: "no number" }] } } }`;
const jobs = `defineJob({ name: "mail", queue: "post" }), defineJob({ name: "report" }),
  defineJob({ name: "checked", input: ${numbers} })`;
const postgres = await testbed.postgres();

/** The JSON lines of an answer. */
function lines(text: string): Record<string, unknown>[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

describe("operating from a program [K12]", () => {
  const folder = scratchFolder();
  const run = (...args: string[]) => escapement(folder, ...args);
  before(async () => {
    configure(folder, jobs);
    await furnish({ store: `sqlite:${join(folder, "app.db")}` });
  });

  async function record(figures: Partial<HistoryEntry>): Promise<void> {
    const store = await sqlite(join(folder, "app.db")).open({
      ...{ namespace: "default", clock: systemClock, log: silentLogger },
    });
    const entry = { ...noFigures, agoMs: 0, queue: "", name: "", ...figures };
    await store.recordHistory({ node: `test-${JSON.stringify(figures)}`, sequence: 1, entries: [entry] });
    await store.close();
  }

  test("jobs ls speaks the words of filters, one line of JSON for each job, and says where it stopped", async () => {
    const dead = await run(
      "jobs",
      "ls",
      "--json",
      "--state",
      "dead,lost",
      "--error",
      "ROUTE",
      "--limit",
      "4",
    );
    assert.deepEqual(
      lines(dead.stdout).map(({ id }) => id),
      ["mail-27", "mail-24", "mail-21", "mail-18"],
    );
    const [{ cursor } = {}] = lines(dead.stderr);
    const rest = await run(
      ...["jobs", "ls", "--json", "--state", "dead", "--error", "route", "--cursor", String(cursor)],
    );
    assert.equal(lines(rest.stdout).length, 6);
    const vip = await run("jobs", "ls", "--json", "--tag", "vip", "--since", "1h", "--name", "mail");
    assert.deepEqual(
      lines(vip.stdout).map(({ id, error }) => [id, error]),
      [["mail-3", { name: "RangeError", message: "no route to host 3" }]],
    );
    assert.deepEqual(lines((await run("jobs", "ls", "--json", "--until", "1h")).stdout), []);
    const text = await run("jobs", "ls", "--json", "--text", '"month":4', "--queue", "default");
    assert.deepEqual(
      lines(text.stdout).map(({ id }) => id),
      ["report-4"],
    );
  });

  test("history shows what ended and when, by span, by job, and as it is kept", async () => {
    const points = lines((await run("history", "--json")).stdout);
    const sum = (key: string) => points.reduce((total, point) => total + Number(point[key]), 0);
    assert.deepEqual([sum("succeeded"), sum("dead")], [10, 20]);
    const { stdout } = await run("history", "--since", "10m");
    assert.match(
      stdout,
      /^from, for 1m each +succeeded +failed +dead +lost +cancelled +took +latest start +most due\n/,
    );
    assert.match(stdout, /\nsucceeded [▁▂▃▄▅▆▇█]+\n$/);
    assert.match((await run("history", "--by", "name")).stdout, /\nmail +10 +0 +20 /);
    assert.equal((await run("history", "--queue", "nobody")).stdout, "nothing ended in this time\n");
    await record({ queue: "out", name: "pay", succeeded: 1, late: [0, 0, 0, 1, 0, 0, 0], lateMaxMs: 7_000 });
    await record({ queue: "out", name: "", dueMax: 42 });
    const relayed = (await run("history", "--by", "queue", "--queue", "out")).stdout;
    assert.match(
      relayed,
      /\nout +1 +0 +0 +0 +0 +7s +42\n/,
      "what a relay handed over has a start, and was not timed",
    );
  });

  test("what nothing can be done to is counted, and a group that is not there is said to be none", async () => {
    for (const flags of [[], ["--yes"], ["--dry-run"]]) {
      const cancelled = await run("jobs", "cancel", "--name", "mail", "--state", "dead", ...flags);
      assert.equal(cancelled.stdout, "20 match, none can be cancelled (dead)\n");
      const group = await run("dead", "redrive", "nope", ...flags);
      assert.deepEqual([group.code, group.stdout], [1, "there is no such group of jobs: nope\n"]);
    }
    const tagged = await run("jobs", "cancel", "--tag", "vip");
    assert.equal(tagged.stdout, "none of the jobs that match can be cancelled\n");
    assert.equal((await run("jobs", "cancel", "--name", "nobody")).stdout, "no job matches\n");
  });

  test("a command line that cannot be meant exits with 2, and what was not done with 1", async () => {
    const wrong = [
      ["jobs", "ls", "--since", "1h", "--until", "2h"],
      ["jobs", "ls", "--text", ""],
      ["enqueue", "mail", "--input", "{bad"],
      ["enqueue", "mail", "--input", "{}", "--delay", "1h", "--at", "2030-01-01T00:00:00Z"],
      ["cron", "next", "0 0 * * *", "--tz", "Europe/Berln"],
      ["jobs", "ls", "--cursor", "forged"],
    ];
    for (const args of wrong) {
      const { code, stderr } = await run(...args);
      assert.equal(code, 2, `${args.join(" ")}: ${stderr}`);
    }
    const undone = [
      ["jobs", "edit", "nobody", "--priority", "1"],
      ["jobs", "cancel", "nobody", "report-9", "--yes"],
      ["dead", "redrive", "000000000000", "--yes"],
    ];
    for (const args of undone) {
      const { code, stderr } = await run(...args);
      assert.equal(code, 1, `${args.join(" ")}: ${stderr}`);
    }
    assert.match((await run("jobs", "cancel", "nobody", "mail-1", "--yes")).stderr, /not found: nobody\n/);
  });

  test("dead groups failures by what went wrong, and a group is redriven by its fingerprint", async () => {
    const groups = lines((await run("dead", "--json")).stdout);
    assert.deepEqual(groups.map(({ count, shape, name }) => [count, shape, name]).toSorted(), [
      [10, "Error: mailbox <text> is full", "mail"],
      [10, "RangeError: no route to host <n>", "mail"],
    ]);
    const full = groups.find(({ shape }) => String(shape).includes("mailbox"));
    const fingerprint = String(full?.["fingerprint"]);
    const dry = await run("dead", "redrive", fingerprint, "--dry-run", "--json");
    assert.deepEqual(lines(dry.stdout), [{ matched: 10 }]);
    const unsure = await run("dead", "redrive", fingerprint, "--json");
    assert.equal(unsure.code, 2);
    assert.match(
      unsure.stderr,
      /^\{"error":\{"code":"usage","message":"This will redrive 10 jobs\. Pass --yes/,
    );
    const done = await run(
      "dead",
      "redrive",
      fingerprint,
      "--yes",
      "--json",
      "--reason",
      "there is room again",
    );
    assert.deepEqual(
      lines(done.stdout).map(({ action, matched, outcomes }) => [action, matched, outcomes]),
      [["redrive", 10, { redriven: 10 }]],
    );
    const show = lines((await run("jobs", "show", "mail-1", "--json")).stdout)[0];
    assert.match(JSON.stringify(show), /"kind":"redriven".*there is room again/);
    assert.deepEqual(lines((await run("lost", "--json")).stdout), []);
  });

  test("jobs are cancelled, edited, made due and deleted by id; what could not be done ends with 1", async () => {
    const some = await run("jobs", "cancel", "report-0", "nobody", "--yes", "--json");
    assert.deepEqual([some.code, lines(some.stdout)], [1, [{ cancelled: 1, unknown: 1 }]]);
    assert.deepEqual(lines((await run("jobs", "delete", "report-0", "--json")).stdout), [{ deleted: 1 }]);
    const edited = await run(
      "jobs",
      "edit",
      "report-1",
      "--json",
      "--input",
      '{"month":12}',
      "--priority",
      "7",
    );
    assert.deepEqual([edited.code, lines(edited.stdout)], [0, [{ outcome: "updated", state: "waiting" }]]);
    const due = await run(
      ...["jobs", "run-now", "report-1", "nobody"],
      "--json",
      "--yes",
      "--actor",
      "carol",
    );
    assert.deepEqual([due.code, lines(due.stdout)], [1, [{ updated: 1, unknown: 1 }]]);
    const story = (await run("jobs", "show", "report-1")).stdout;
    assert.match(story, /noted: edited \(input, priority\) by \S+@/);
    assert.match(story, /noted: made due by carol/);
    assert.match(story, /input:\n {2}\{\n {4}"month": 12\n/);
    const gone = await run("jobs", "show", "report-0", "--json");
    assert.deepEqual(
      [gone.code, lines(gone.stderr)],
      [1, [{ error: { code: "not-found", message: 'there is no job "report-0"' } }]],
    );
  });

  test("what could not be done to jobs by id is said in words, and a dry run counts what can be", async () => {
    const cases: [string[], string][] = [
      [["cancel", "mail-2"], "1 had ended already"],
      [["delete", "nobody"], "1 not found"],
      [["delete", "report-2"], "1 not ended yet"],
      [["redrive", "mail-2"], "1 neither dead nor lost"],
      [["run-now", "mail-2"], "1 started or ended already"],
    ];
    for (const [args, words] of cases) {
      const { code, stdout } = await run("jobs", ...args);
      assert.deepEqual([code, stdout], [1, `${words}\n`], args.join(" "));
    }
    const dry = (...args: string[]) => run("jobs", ...args, "--dry-run");
    assert.equal((await dry("cancel", "mail-2", "report-2", "nobody")).stdout, "1 job would be cancelled\n");
    assert.equal((await dry("run-now", "mail-2", "report-2")).stdout, "1 job would be made due\n");
  });

  test("jobs that wait are made due by a filter, after a question", async () => {
    const filter = ["--name", "report", "--text", '"month":', "--since", "1h", "--json"];
    const unsure = await run("jobs", "run-now", ...filter);
    assert.deepEqual([unsure.code, unsure.stdout], [2, ""]);
    assert.match(unsure.stderr, /This will make \d jobs due\. Pass --yes/);
    const [dry] = lines((await run("jobs", "run-now", ...filter, "--dry-run")).stdout);
    const [due] = lines((await run("jobs", "run-now", ...filter, "--yes")).stdout);
    assert.deepEqual(due?.["outcomes"], { updated: dry?.["matched"] });
    assert.equal(
      (await run("jobs", "run-now", ...filter.slice(0, -1))).stdout,
      "none of the jobs that match can be made due\n",
    );
  });

  test("enqueue takes JSON, a file or standard input, and an id that is known enqueues nothing", async () => {
    const first = await run(
      "enqueue",
      "report",
      "--input",
      '{"month":8}',
      "--id",
      "r-8",
      "--delay",
      "1h",
      "--json",
    );
    assert.deepEqual(lines(first.stdout), [{ id: "r-8", outcome: "added" }]);
    writeFileSync(join(folder, "input.json"), '{"month":9}');
    const again = await run("enqueue", "report", "--input", "@input.json", "--id", "r-8", "--json");
    assert.deepEqual(lines(again.stdout), [{ id: "r-8", outcome: "existing" }]);
    const broken = await run("enqueue", "report", "--input", "{", "--json");
    assert.deepEqual([broken.code, /"invalid-input"/.test(broken.stderr)], [2, true]);
    const unknown = await run("enqueue", "nothing");
    assert.match(
      unknown.stderr,
      /no config file here defines the job "nothing" \(it defines mail, report, checked\)/,
    );
    assert.equal((await run("enqueue", "nothing", "--delivery", "at-most-once", "--delay", "1h")).code, 0);
  });

  test("enqueue reads an input from a pipe, and stops at what no store takes", async () => {
    const args = ["enqueue", "report", "--json", "--delay", "1h", "--input"];
    execFileSync("mkfifo", [join(folder, "pipe")]);
    const piped = run(...args, "@pipe", "--id", "piped");
    await writeFile(join(folder, "pipe"), '{"month":10}');
    assert.equal((await piped).code, 0);
    const endless = await run(...args, "@/dev/zero");
    assert.equal(endless.code, 2);
    assert.match(endless.stderr, /expected \/dev\/zero to have at most 67108864 bytes/);
  });

  test("inputs keep all digits of their numbers, with a schema too", async () => {
    const inputs = ['{"n":9007199254740993123}', '{"n":1.2345678901234567890123}'] as const;
    for (const name of ["report", "checked"]) {
      const shown = async () => (await run("jobs", "show", name, "--json")).stdout;
      await run("enqueue", name, "--id", name, "--delay", "1h", "--input", inputs[0]);
      assert.match(await shown(), /"input":\{"n":9007199254740993123\}/);
      await run("jobs", "edit", name, "--input", inputs[1]);
      assert.match(await shown(), /"input":\{"n":1\.2345678901234567890123\}/);
    }
  });

  test("a backfill counts first, and plans more than one job only after a yes", async () => {
    const hour = 3_600_000;
    const latest = Math.floor(Date.now() / hour) * hour;
    const at = (ago: number) => new Date(latest - ago * hour).toISOString();
    const backfill = (...args: string[]) => run("schedules", "backfill", "hourly", "--to", at(1), ...args);
    {
      await using app = createEscapement({
        store: `sqlite:${join(folder, "app.db")}`,
        jobs: [report],
        log: silentLogger,
      });
      await app.schedule("hourly", { every: "1h" }, report, { month: 1 });
    }
    const dry = await backfill("--from", at(3), "--dry-run", "--json");
    assert.deepEqual([dry.code, lines(dry.stdout)], [0, [{ matched: 3 }]], dry.stderr);
    const unsure = await backfill("--from", at(3));
    assert.deepEqual([unsure.code, unsure.stdout], [2, ""]);
    assert.match(unsure.stderr, /This will plan 3 jobs\. Pass --yes to do it, or --dry-run to count\./);
    const one = await backfill("--from", at(1));
    assert.deepEqual([one.code, one.stdout], [0, "1 planned\n"], one.stderr);
    const all = await backfill("--from", at(3), "--yes", "--json");
    assert.deepEqual([all.code, lines(all.stdout)], [0, [{ planned: 2 }]], all.stderr);
    assert.equal((await backfill("--from", at(3), "--dry-run")).stdout, "0 jobs would be planned\n");
    assert.equal((await run("schedules", "rm", "hourly")).code, 0);
  });

  test("queues and schedules are looked at and changed, and the audit log says who did it", async () => {
    const env = ["--actor", "dave", "--reason", "maintenance", "--json"];
    assert.equal(lines((await run("queues", "pause", "post", ...env)).stdout)[0]?.["paused"], true);
    const limited = await run("queues", "limit", "post", "--concurrency", "3", "--rate", "100/1s", ...env);
    assert.deepEqual(lines(limited.stdout), [
      { queue: "post", paused: true, concurrency: 3, rate: { limit: 100, perMs: 1_000 } },
    ]);
    const queues = lines((await run("queues", "ls", "--json")).stdout);
    const post = queues.find(({ queue }) => queue === "post");
    assert.deepEqual([post?.["due"], post?.["paused"], post?.["concurrency"]], [10, true, 3]);
    assert.equal((await run("queues", "limit", "post", "--rate", "lots")).code, 2);
    const free = await run("queues", "limit", "post", "--concurrency", "none");
    assert.deepEqual([free.code, free.stdout], [0, "post: paused, at most 100 per 1s\n"], free.stderr);
    const freer = await run("queues", "limit", "post", "--rate", "none", ...env);
    assert.deepEqual(lines(freer.stdout), [{ queue: "post", paused: true, concurrency: null, rate: null }]);
    assert.equal((await run("schedules", "rm", "nightly", ...env)).code, 0);
    assert.equal((await run("schedules", "rm", "nightly", "--json")).code, 1);
    assert.deepEqual((await run("schedules", "ls", "--json")).stdout, "");
    const entries = lines((await run("audit", "--json", "--actor", "dave", "--since", "1h")).stdout);
    assert.deepEqual(
      entries.map(({ action, target, reason }) => [action, target, reason]),
      [
        ["remove-schedule", "schedule:nightly", "maintenance"],
        ["limit-queue", "queue:post", "maintenance"],
        ["limit-queue", "queue:post", "maintenance"],
        ["pause-queue", "queue:post", "maintenance"],
      ],
    );
    assert.deepEqual(lines((await run("nodes", "--json")).stdout), []);
    assert.deepEqual(lines((await run("partitions", "--json")).stdout), []);
  });

  test("nonsense is refused with a code, for people and for programs", async () => {
    const cases: [string[], RegExp][] = [
      [["jobs", "ls", "--state", "ded"], /expected any of blocked, waiting/],
      [["jobs", "ls", "--since", "yesterday"], /expected a time such as/],
      [["jobs", "cancel"], /expected ids of jobs, or a filter/],
      [["jobs", "cancel", "a", "--state", "dead"], /and not both/],
      [["jobs", "edit", "a"], /expected something to change/],
      [["queues", "limit", "q"], /expected a limit/],
      [["status", "--watch"], /--watch is a screen on a terminal/],
      [["api", "--port", "99999"], /expected a port from 0 to 65535/],
      [["dev", "--port", "99999"], /expected a port from 0 to 65535/],
      [["jobs", "ls", "--since", "1h", "--until", "2h"], /expected since to be before until/],
      [["enqueue", "report", "--input", "@nofile"], /cannot read nofile: there is no such file \[/],
    ];
    const nowhere: [string[], RegExp][] = [
      [["explain", "nope@2026-11-15T03:00:00Z"], /there is no schedule "nope".* \[not-found\]/],
    ];
    for (const [args, expected] of nowhere) {
      const { code, stderr } = await run(...args);
      assert.deepEqual([code, expected.test(stderr)], [1, true], `${args.join(" ")}: ${stderr}`);
    }
    for (const change of [
      ["pause", "nope"],
      ["limit", "nope2", "--concurrency", "1"],
    ])
      assert.match((await run("queues", ...change)).stderr, /no job was ever in the queue "nope2?"/);
    for (const [args, expected] of cases) {
      const { code, stderr } = await run(...args);
      assert.deepEqual([code, expected.test(stderr)], [2, true], `${args.join(" ")}: ${stderr}`);
    }
    const json = await run("jobs", "ls", "--nope", "--json");
    assert.deepEqual([json.code, json.stdout, lines(json.stderr).length], [2, "", 1]);
    const text = await run("jobs", "ls", "--text", "");
    assert.match(text.stderr, /expected text of a filter to be a string of 1 to 1000 characters/);
  });

  test("completion scripts are scripts, and know commands and options", async () => {
    const bash = (await run("completion", "bash")).stdout;
    assert.match(bash, /'jobs redrive'/);
    assert.match(bash, /--fingerprint/);
    assert.match((await run("completion", "fish")).stdout, /complete -c escapement .* -a redrive/);
    assert.match((await run("completion", "zsh")).stdout, /^#compdef escapement/);
    assert.equal((await run("completion", "tcsh")).code, 2);
  });

  test("completion offers the values of options that have a few", async () => {
    const [bash, zsh, fish] = await Promise.all(
      ["bash", "zsh", "fish"].map(async (shell) => (await run("completion", shell)).stdout),
    );
    writeFileSync(join(folder, "completion.bash"), bash ?? "");
    const offered = (...words: string[]): string[] => {
      const line = ["escapement", ...words].map((word) => `'${word}'`).join(" ");
      const script = `. ./completion.bash; COMP_WORDS=(${line}); COMP_CWORD=${words.length}; _escapement; echo "\${COMPREPLY[@]}"`;
      const answer = execFileSync("bash", ["-c", script], { cwd: folder, encoding: "utf8" });
      return answer.trim().split(" ");
    };
    assert.deepEqual(offered("jobs", "ls", "--state", ""), [...jobStates]);
    assert.deepEqual(offered("dead", "--state", "l"), ["lost"]);
    assert.deepEqual(offered("jobs", "ls", "--delivery", ""), [...deliveries]);
    assert.deepEqual(offered("jobs", "ls", "--order", "n"), ["newest"]);
    assert.deepEqual(offered("queues", "p"), ["pause"]);
    const values = jobStates.join(" ");
    assert(zsh?.includes(`--state) COMPREPLY=($(compgen -W '${values}' -- "$current")); return;;`));
    assert.match(fish ?? "", new RegExp(`from ls' -l state -x -a '${values}'`));
  });
});

describe("operating from a terminal [K12]", { skip: noTerminal }, () => {
  const folder = scratchFolder();
  before(async () => {
    configure(folder, jobs);
    await furnish({ store: `sqlite:${join(folder, "app.db")}` });
  });

  test("tables fit the terminal, and colours are for terminals that want them", async () => {
    for (const columns of [60, 80, 120]) {
      const { output } = await onTerminal(folder, ["jobs", "ls", "--state", "dead"], { columns });
      const widest = Math.max(
        ...plainText(output)
          .split("\n")
          .map((line) => line.length),
      );
      assert(widest <= columns, `${widest} columns on a terminal of ${columns}`);
      assert(output.includes("\u001b[31mdead"), "it is red");
      assert.match(output, /mail-27 /, "an id is not cut");
    }
    const plain = await onTerminal(folder, ["jobs", "ls"], { env: { NO_COLOR: "1" } });
    assert.equal(plain.output, plainText(plain.output));
    const piped = await escapement(folder, "jobs", "ls", "--state", "dead");
    assert.equal(piped.stdout, plainText(piped.stdout));
    assert.doesNotMatch(piped.stdout, /…/);
  });

  test("acting on more than one asks first; no means no, yes shows how far it is", async () => {
    const args = ["jobs", "redrive", "--state", "dead", "--error", "mailbox"];
    const no = await onTerminal(folder, args, { type: [[/\[y\/N\] /, "n\r"]] });
    assert.match(no.output, /This will redrive 10 jobs\. \[y\/N\]/);
    assert.match(no.output, /nothing was changed/);
    assert.equal(no.code, 1, "it was not done");
    const interrupted = await onTerminal(folder, args, { type: [[/\[y\/N\] /, "\u0003"]] });
    assert.match(interrupted.output, /nothing was changed/);
    assert.equal(interrupted.code, 130);
    const ended = await onTerminal(folder, args, { type: [[/\[y\/N\] /, "\u0004"]] });
    assert.match(ended.output, /nothing was changed/);
    assert.equal(ended.code, 1, "Ctrl-D is a no");
    const yes = await onTerminal(folder, args, { type: [[/\[y\/N\] /, "y\r"]] });
    assert.match(plainText(yes.output), /redriving: \d+ jobs of 10/);
    assert.match(yes.output, /10 redriven\n$/);
    const one = await onTerminal(folder, ["jobs", "cancel", "report-5"]);
    assert.match(one.output, /1 cancelled/, "one job is not asked about");
  });

  test("status --watch is a screen that q leaves as it was", async () => {
    const { output, code } = await onTerminal(folder, ["status", "--watch", "--every", "100ms"], {
      type: [[/no node is alive/, "q"]],
    });
    assert.equal(code, 0);
    assert(output.startsWith("\u001b[?1049h\u001b[?25l"), "a screen of its own, without a cursor");
    assert(output.endsWith("\u001b[?25h\u001b[?1049l"), "and back");
    const text = plainText(output);
    assert.match(text, /done\/s .* failed\/s/);
    assert.match(text, /queue +due +oldest +later/);
    assert.match(text, /RangeError: no route to host <n>/);
    const widest = Math.max(...text.split("\n").map((line) => line.length));
    assert(widest <= 80, `${widest} columns on a terminal of 80`);
  });

  test("Ctrl-C ends with 0 what has no other end, and with 130 what has", async () => {
    const after = (shown: RegExp, ...args: string[]) =>
      onTerminal(folder, args, { type: [[shown, "\u0003"]] });
    assert.equal((await after(/no node is alive/, "status", "--watch")).code, 0);
    assert.equal((await after(/report-1/, "jobs", "tail", "--name", "report")).code, 0);
    assert.equal((await after(/now .*waiting/, "jobs", "tail", "report-1")).code, 130);
  });

  test("jobs tail tells one job's story to its end", async () => {
    const { stdout, code } = await escapement(folder, "jobs", "tail", "mail-0");
    assert.equal(code, 0);
    assert.match(stdout, /failed attempts used up \(1\), RangeError: no route to host 0\nnow dead/);
  });

  test("which attempt of how many has begun is in the table of jobs", async () => {
    const { stdout } = await escapement(folder, "jobs", "ls", "--state", "dead");
    assert.match(stdout, /^id +job +queue +state +attempt +when/m);
    assert.match(stdout, /^mail-0 .* dead +1\/1 /m);
  });
});

describe("operating on Postgres [K12]", { skip: postgres.skip }, () => {
  const folder = scratchFolder();
  const store = { store: postgres.url, namespace: "cli-operate" };
  const run = (...args: string[]) =>
    escapement(folder, ...args, "--store", postgres.url, "--namespace", "cli-operate");
  before(() => furnish(store));

  test("looking, redriving a group, and the audit log", async () => {
    const [group] = lines((await run("dead", "--json", "--error", "route")).stdout);
    assert.deepEqual([group?.["count"], group?.["shape"]], [10, "RangeError: no route to host <n>"]);
    const redriven = await run("dead", "redrive", String(group?.["fingerprint"]), "--yes", "--actor", "erin");
    assert.equal(redriven.stdout, "10 redriven\n");
    assert.match((await run("queues", "ls")).stdout, /post +10 /);
    assert.match(
      (await run("audit", "--actor", "erin")).stdout,
      /erin +redrive-all +jobs:\{"states":\["dead"\]/,
    );
    assert.match((await run("status")).stdout, /post +mail +10/);
  });
});
