import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { describe, test } from "node:test";
import { until } from "../src/testing/until.ts";
import { scratchFolder } from "./scratch.ts";

const demo = join(import.meta.dirname, "../examples/demo/index.ts");

function start(...args: string[]) {
  const child = spawn(process.execPath, [demo, ...args], {
    cwd: scratchFolder(),
    env: { ...process.env, NO_COLOR: "1" },
  });
  let output = "";
  child.stdout.on("data", (data) => {
    output += data;
  });
  child.stderr.on("data", (data) => {
    output += data;
  });
  return { child, ended: once(child, "close"), output: () => output };
}

/** The address is the first thing that it says. */
async function addressOf({ child, output }: ReturnType<typeof start>): Promise<string> {
  await until("it says something", () => output().includes("\n") || child.exitCode !== null);
  const [, url] = /^Escapement: the dashboard is at (http:\/\/127\.0\.0\.1:\d+\/);/.exec(output()) ?? [];
  return url ?? assert.fail(output());
}

type Row = Readonly<Record<string, unknown>>;

const past = "history?by=name&step=hour&since=2d";

/** What the screens ask for, and what must be in the answer. */
const screens: readonly (readonly [
  what: string,
  path: string,
  list: string,
  holds: (rows: readonly Row[]) => boolean,
])[] = [
  [
    "all three guarantees",
    "jobs?state=succeeded&limit=1000",
    "jobs",
    (rows) => countOf(rows, "delivery") === 3,
  ],
  ["two groups of failures", "failures?state=dead", "groups", (rows) => rows.filter(isLarge).length === 2],
  ["a lost job", "jobs?state=lost", "jobs", (rows) => rows[0]?.["reason"] === "its lease ran out"],
  ["a retry", "jobs?name=resize-image&state=succeeded", "jobs", (rows) => rows[0]?.["attempt"] === 2],
  ["simulated jobs are marked", "counts?tag=simulated", "counts", (rows) => rows.length > 0],
  ["skips by overlap", "schedules/backup/occurrences", "occurrences", (rows) => hasSkip(rows, /overlap/)],
  ["skips by a pause", "schedules/prices/occurrences", "occurrences", (rows) => hasSkip(rows, /paused/)],
  ["skips by an outage", "schedules/prices/occurrences", "occurrences", (rows) => hasSkip(rows, /misfire/)],
  ["a schedule that fires now", "schedules/sales/occurrences", "occurrences", (rows) => rows.length > 0],
  ["a paused queue", "queues", "queues", (rows) => rows.some((row) => row["paused"] && row["due"] !== 0)],
  ["a limit of rate", "queues", "queues", (rows) => rows.some((row) => row["rate"] !== null)],
  ["a limit of concurrency", "queues", "queues", (rows) => rows.some((row) => row["concurrency"] !== null)],
  ["blocked jobs", "jobs?state=blocked", "jobs", (rows) => rows.length > 0],
  ["a node that is gone", "nodes", "nodes", (rows) => countOf(rows, "alive") === 2],
  [
    "a relay with partitions",
    "partitions",
    "partitions",
    (rows) => rows.some((row) => row["owner"] !== null),
  ],
  ["duplicates prevented", "history?by=name", "points", (rows) => rows.some((row) => row["existing"] !== 0)],
  ["a rerun after a fault", past, "points", (rows) => rows.some((row) => row["crashed"] !== 0)],
  ["a stale outcome refused", past, "points", (rows) => rows.some((row) => row["stale"] !== 0)],
  ["what people did", "audit", "entries", (rows) => rows.length > 1],
];

function countOf(rows: readonly Row[], field: string): number {
  return new Set(rows.map((row) => row[field])).size;
}

function isLarge(group: Row): boolean {
  return Number(group["count"]) > 2;
}

function hasSkip(rows: readonly Row[], reason: RegExp): boolean {
  return rows.some((row) => row["fate"] === "skipped" && reason.test(String(row["reason"])));
}

describe("the demo with its dashboard", () => {
  test("every screen has something true to show, and Ctrl-C removes all of it", async () => {
    const running = start();
    const url = await addressOf(running);
    await until("it says where its jobs are", () => running.output().includes("The jobs are in"));
    const file = /The jobs are in (\S+), which is removed at the end/.exec(running.output())?.[1] ?? "";
    const ask = async (path: string) => JSON.parse(await (await fetch(`${url}api/${path}`)).text());
    try {
      assert.match(await (await fetch(url)).text(), /<title>Escapement<\/title>/);
      assert.ok(existsSync(file), file);
      for (const [what, path, list, holds] of screens)
        await until(what, async () => holds((await ask(path))[list]));
      await until("a job of a flow has progress and lines of a log", async () => {
        const { jobs } = await ask("jobs?name=encode-video");
        const { job, trail } = await ask(`jobs/${encodeURIComponent(jobs.at(-1).id)}`);
        return job.progress !== null && JSON.stringify(trail).includes("frames at");
      });
      const { jobs } = await ask("jobs?name=charge-card&state=waiting");
      assert.equal((await ask(`jobs/${jobs[0].id}`)).job.input.card, "[redacted]");
    } finally {
      running.child.kill("SIGINT");
      running.child.kill("SIGINT");
    }
    assert.deepEqual(await running.ended, [0, null], running.output());
    assert.equal(existsSync(file), false, "the temporary file");
  });

  test("it takes a free port when the usual one is taken, keeps a file that is named, and simulates once", async () => {
    const other = createServer().listen(3_811, "127.0.0.1").unref();
    // If something else holds the port, it is taken too.
    await once(other, "listening").catch((error) => assert.equal(error.code, "EADDRINUSE"));
    const db = join(scratchFolder(), "mine.db");
    for (const isFirst of [true, false]) {
      const running = start("--db", db);
      const url = await addressOf(running);
      assert.notEqual(new URL(url).port, "3811");
      // The last thing that it sets up.
      await until("it runs", async () => (await fetch(`${url}api/schedules/sales`)).ok);
      running.child.kill("SIGTERM");
      assert.deepEqual(await running.ended, [0, null], running.output());
      assert.equal(/A day of history was simulated/.test(running.output()), isFirst);
      assert.ok(existsSync(db));
    }
    other.close();
  });

  test("Ctrl-C while the day is being simulated ends it cleanly", async () => {
    const running = start();
    await addressOf(running);
    running.child.kill("SIGINT");
    assert.deepEqual(await running.ended, [0, null], running.output());
  });
});

describe("the demo without its dashboard", () => {
  test("--for: it shows each kind of event, stops by itself, prints totals and exits 0", async () => {
    const { ended, output } = start("--no-dashboard", "--for", "5s");
    assert.deepEqual(await ended, [0, null]);
    const lines = output();
    for (const line of [
      /started +send-sms .*at-most-once/,
      /started +resize-image .*at-least-once, attempt 2/,
      /started +book-invoice .*effectively-once/,
      /failed +resize-image .*again in/,
      /snoozed +wait-for-report/,
      /dead +import-feed .*is gone/,
      /succeeded +book-invoice .*booked/,
      /succeeded +roll-up .*sales up to/,
      /^totals .*waiting.*succeeded.*dead/m,
    ]) {
      assert.match(lines, line);
    }
  });

  test("Ctrl-C stops it gracefully, also when the signal arrives twice, as npm does it", async () => {
    const { child, ended, output } = start("--no-dashboard");
    while (!/succeeded/.test(output())) await once(child.stdout, "data");
    child.kill("SIGINT");
    child.kill("SIGINT");
    assert.deepEqual(await ended, [0, null]);
    assert.match(output(), /stopping[\s\S]*totals/);
  });

  test("nonsense gets one clear line and the usage", async () => {
    for (const args of [
      ["--for", "soon"],
      ["--fro", "5s"],
    ]) {
      const { ended, output } = start(...args);
      assert.deepEqual(await ended, [2, null]);
      assert.match(output(), /usage: npm start/);
    }
  });
});
