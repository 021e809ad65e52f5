import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { globSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { testbed } from "../testbed/index.ts";
import { newFolder } from "./behaviour/stores.ts";

const folder = join(import.meta.dirname, "../examples");

const server = await testbed.postgres();
const onPostgres = [/^receipt for order \d+$/, /^after the rollback: null$/];

/** Lines that each example must print, in this order. */
const expected: Readonly<Record<string, readonly RegExp[]>> = {
  "quickstart.ts": [/^Hello, Ada! \(attempt 1\)$/],
  "guarantees.ts": [
    /^victim: killed$/,
    /^at-most-once: lost \(its lease ran out\), crashes 1$/,
    /^at-least-once: succeeded \(done\), crashes 1$/,
    /^effectively-once: succeeded \(done, with its effect\), crashes 1$/,
  ],
  "retries.ts": [/^charged 42 on attempt 3$/, /^written$/, /^job-failed$/],
  "unique.ts": [/^added, absorbed, the same job: true$/, /^synced 42$/, /^indexed home at revision 3$/],
  "limits.ts": [/^at most 1 render at a time/, /^password reset, receipt, newsletter$/],
  "workflow.ts": [/^running fetch$/, /^words: 5$/, /^cancelled: its parent broken is dead$/],
  "operations.ts": [
    /^copy is cancelled$/,
    /^dead: 1, the bank does not answer$/,
    /^redriven: the bank is back, 20/,
  ],
  "enqueue-from-handler.ts": [
    /^doubled: 42$/,
    /^pages: 3$/,
    /^albums: 2$/,
    /^added, added$/,
    /^width: 2$/,
    /^deleted: null$/,
  ],
  "transactions.ts": [/^ada has 95 cents$/, /^after the rollback: null$/],
  "transactions-pg.ts": onPostgres,
  "transactions-postgres.ts": onPostgres,
  "transactions-drizzle.ts": onPostgres,
  "transactions-kysely.ts": onPostgres,
  "from-bullmq.ts": [/^welcomed ada, attempt 1$/, /^true$/],
  "from-pg-boss.ts": onPostgres,
  "schedules.ts": [
    /^nightly fires at 02:30, on Monday to Friday$/,
    /^2026-03-30T00:30:00\.000Z$/,
    /^true,at 02:30, on Monday to Friday,9,11,13,15,17$/,
    /^all, for 20/,
    /^pulse at 20.*: succeeded, \d+ ms late$/,
    /^nightly does not fire at 2026-01-01T12:00:00\.000Z by its rules; after that it fires at 2026-01-02T01:30/,
  ],
  "inbox.ts": [/^two copies at once, handled: 1$/, /^one more: duplicate$/, /^payments: 1$/],
  "fire-here-run-there.ts": [/^there: paid 42/, /^here: succeeded$/, /^payments: 1$/],
  "recipes.ts": [/^natural idempotency: cancelled$/, /^check, then act: 2 e-mails/],
  "shutdown.ts": [/^before it stopped, the handler finished$/],
  "telemetry.ts": [/^escapement_jobs_total\{name="greet".*outcome="succeeded".*\} 1$/, /^ready: 200$/],
  "sentry.ts": [/^reported: the bank does not answer, job,charge attempt,2 of 2$/, /^ended: dead$/],
  "threads.ts": [/^[0-9a-f]{16}$/, /^the event loop turned meanwhile: true$/],
  "testing.test.ts": [/the reminder goes out an hour later/, /^. pass 1$/],
  "schema.ts": [
    /^added$/,
    /^ada owes 0$/,
    /^invalid-input: the input of job "invoice" does not fit its schema: customer/,
  ],
};

describe("examples end by themselves and print what they should", { concurrency: 2 }, () => {
  for (const [name, lines] of Object.entries(expected)) {
    test(name, { skip: lines === onPostgres && server.skip }, async () => {
      // Inside a test run a child that holds tests would report to it instead of printing.
      const { NODE_TEST_CONTEXT: _context, ...env } = process.env;
      const { stdout } = await promisify(execFile)(process.execPath, [join(folder, name)], {
        cwd: newFolder(),
        env: server.skip === false ? { ...env, DATABASE_URL: server.url } : env,
        timeout: 60_000,
      });
      const printed = stdout.split("\n");
      const places = lines.map((line) => printed.findIndex((one) => line.test(one)));
      assert.ok(
        places.every((place, index) => place >= 0 && place > (places[index - 1] ?? -1)),
        `expected ${lines.join(", ")} in this order, got:\n${stdout}`,
      );
    });
  }

  test("no example is left out", () => {
    const found = globSync("*.ts", { cwd: folder }).filter((name) => name !== "demo.ts");
    assert.deepEqual(found.sort(), Object.keys(expected).sort());
  });
});
