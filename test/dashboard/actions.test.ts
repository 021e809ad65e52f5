import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Job, JobState } from "../../src/index.ts";
import { Operations } from "../../src/index.ts";
import { closeBrowser, looks, skip, type VisitOptions, visit } from "./browser.ts";
import { type Stage, serveDemo } from "./stage.ts";

for (const look of looks)
  describe(
    `what people do on the dashboard at ${look.width} px, ${look.colours}`,
    { skip, timeout: 600_000 },
    () => whatPeopleDo(look),
  );

function whatPeopleDo(look: VisitOptions): void {
  let stage: Stage;
  before(async () => {
    stage = await serveDemo();
  });
  after(async () => {
    await closeBrowser();
    await stage.close();
  });

  async function oneOf(name: string, state: JobState): Promise<Job> {
    const { jobs } = await stage.app.list({ names: [name], states: [state] });
    return jobs[0] ?? assert.fail(`no ${name} is ${state}`);
  }

  async function now(id: string): Promise<Job> {
    return (await stage.app.get(id)) ?? assert.fail(`${id} is gone`);
  }

  /** The last thing that the audit log has. */
  async function lastAct(): Promise<string> {
    const { entries } = await new Operations(stage.app).audit({}, { limit: 1 });
    const [{ actor, action, target, reason } = assert.fail("no entry")] = entries;
    assert.equal(reason, "because of a test");
    return `${actor} ${action} ${target}`;
  }

  test("a dead job is redriven, with its reason in the audit log and on its timeline", async () => {
    const { id } = await oneOf("charge-card", "dead");
    await using visited = await visit(stage.url, look);
    await visited.open(`jobs/${id}`, "charge-card");
    await visited.act("Redrive…", /^Redrive/);
    assert.equal((await now(id)).state, "waiting");
    assert.equal(await lastAct(), `local redrive job:${id}`);
    await visited.page.getByText("because of a test").first().waitFor();
    visited.assertCalm();
  });

  test("a waiting job is edited, made due, copied and cancelled", async () => {
    const { id } = await oneOf("send-newsletter", "waiting");
    await stage.app.update(id, { delay: "2h" });
    await using visited = await visit(stage.url, look);
    const { page } = visited;
    await visited.open(`jobs/${id}`, "send-newsletter");
    await visited.act("Edit…", "Save", async () => {
      await page.getByLabel(/^Input, as JSON/).fill('{ "to": "edited@example.org" }');
      await page.getByLabel(/^Priority/).fill("7");
    });
    const edited = await now(id);
    assert.deepEqual([edited.input, edited.priority], [{ to: "edited@example.org" }, 7]);
    assert.equal(await lastAct(), `local edit job:${id}`);
    await visited.act("Run now…", /^Run now/);
    assert.ok((await now(id)).runAt.getTime() <= Date.now());
    await visited.act("Cancel…", /^Cancel/);
    assert.equal((await now(id)).state, "cancelled");
    const before = await stage.app.count({ names: ["send-newsletter"] });
    await visited.act("Edit and enqueue a copy…", "Enqueue");
    await page.waitForURL((url) => !url.pathname.endsWith(id));
    assert.equal(await stage.app.count({ names: ["send-newsletter"] }), before + 1);
    visited.assertCalm();
  });

  test("an edit is taken back: input, priority and time are as they were", async () => {
    const { id } = await stage.app.enqueue("send-newsletter", { to: "a" }, { delay: "2h", priority: 3 });
    const before = await now(id);
    await using visited = await visit(stage.url, look);
    const { page } = visited;
    await visited.open(`jobs/${id}`, "send-newsletter");
    await page.getByRole("button", { name: "Edit…" }).click();
    assert.equal(await page.getByRole("button", { name: "Save" }).isDisabled(), true, "nothing was edited");
    await page.keyboard.press("Escape");
    await visited.act("Edit…", "Save", async () => {
      await page.getByLabel(/^Input, as JSON/).fill('{ "to": "b" }');
      await page.getByLabel(/^Priority/).fill("7");
      await page.getByLabel(/^Due from now/).fill("5h");
    });
    const edited = await now(id);
    assert.deepEqual([edited.input, edited.priority], [{ to: "b" }, 7]);
    assert.ok(edited.runAt > before.runAt);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Undone.").waitFor();
    const after = await now(id);
    assert.deepEqual(
      [after.input, after.priority, after.runAt],
      [before.input, before.priority, before.runAt],
    );
    visited.assertCalm();
  });

  test("an edit leaves alone what was not edited", async () => {
    const { id } = await stage.app.enqueue("send-newsletter", { to: "a" }, { delay: "2h" });
    await using visited = await visit(stage.url, look);
    const { page } = visited;
    await visited.open(`jobs/${id}`, "send-newsletter");
    await visited.act("Edit…", "Save", async () => {
      await page.getByLabel(/^Priority/).fill("7");
      await stage.app.update(id, { input: { to: "somebody else was here" } });
    });
    const { input, priority } = await now(id);
    assert.deepEqual([input, priority], [{ to: "somebody else was here" }, 7]);
    visited.assertCalm();
  });

  test("the priority of selected jobs is put back, each to its own", async () => {
    const sent = await stage.app.enqueueMany("send-newsletter", [
      { input: { to: "a" }, delay: "1h", tags: ["ranked"], priority: 1 },
      { input: { to: "b" }, delay: "1h", tags: ["ranked"], priority: 2 },
    ]);
    const priorities = () => Promise.all(sent.map(async ({ id }) => (await now(id)).priority));
    await using visited = await visit(stage.url, look);
    const { page } = visited;
    await visited.open("jobs?tag=ranked", "Jobs");
    for (const place of [0, 1])
      await page
        .getByRole("checkbox", { name: /^Select (?!this)/ })
        .nth(place)
        .check();
    await visited.act("Set priority…", /^Set priority \(2\)/, () => page.getByLabel(/^Priority/).fill("9"));
    assert.deepEqual(await priorities(), [9, 9]);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Undone.").waitFor();
    assert.deepEqual(await priorities(), [1, 2]);
    visited.assertCalm();
  });

  test("an ended job is deleted, and the page goes back to the list", async () => {
    const { id } = await oneOf("import-feed", "dead");
    await using visited = await visit(stage.url, look);
    await visited.open(`jobs/${id}`, "import-feed");
    await visited.act("Delete…", /^Delete/);
    await visited.shows("Jobs");
    assert.equal(await stage.app.get(id), null);
    assert.equal(await lastAct(), `local delete job:${id}`);
  });

  test("a queue is paused, resumed and limited", async () => {
    await using visited = await visit(stage.url, look);
    const { page } = visited;
    const queue = async () => (await stage.app.queues()).find(({ queue: name }) => name === "video");
    await visited.open("queues", "Queues");
    const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "video", exact: true }) });
    await row.getByRole("button", { name: "Pause…" }).click();
    await visited.confirm("Pause");
    assert.equal((await queue())?.paused, true);
    await row.getByRole("button", { name: "Resume…" }).click();
    await visited.confirm("Resume");
    assert.equal((await queue())?.paused, false);
    await row.getByRole("button", { name: "Limits…" }).click();
    await page.getByLabel(/^Jobs at once/).fill("3");
    await page.getByLabel(/^Starts/).fill("20");
    await page.getByLabel(/^in each/).fill("1m");
    await visited.confirm("Change");
    const limited = await queue();
    assert.deepEqual([limited?.concurrency, limited?.rate], [3, { limit: 20, perMs: 60_000 }]);
    assert.equal(await lastAct(), "local limit-queue queue:video");
    visited.assertCalm();
  });

  test("a schedule is paused, resumed, run once, backfilled after a preview, and its rule changed", async () => {
    await using visited = await visit(stage.url, look);
    const { page } = visited;
    const schedule = async () => (await stage.app.getSchedule("prices")) ?? assert.fail("it is gone");
    await visited.open("schedules/prices", "prices");
    await visited.act("Pause…", "Pause");
    assert.equal((await schedule()).paused, true);
    await visited.act("Resume…", "Resume");
    assert.equal((await schedule()).paused, false);
    const skipped = async () =>
      (await stage.app.occurrences("prices")).filter(({ fate }) => fate === "skipped").length;
    assert.ok((await skipped()) > 0);
    const zone = page.getByLabel("By the clocks of");
    await visited.act("Backfill…", /^Plan \d/, async () => {
      assert.equal(await zone.inputValue(), "Europe/Berlin", "the schedule's");
      const from = page.getByLabel("From", { exact: true });
      const inBerlin = Date.parse(`${await from.inputValue()}Z`);
      await zone.selectOption("UTC");
      const hours = (inBerlin - Date.parse(`${await from.inputValue()}Z`)) / 3_600_000;
      assert.ok(hours === 1 || hours === 2, `the same moment, ${hours} hours apart`);
    });
    assert.equal(await skipped(), 0);
    assert.equal(await lastAct(), "local backfill-schedule schedule:prices");
    await visited.act("Edit the rule…", "Save", async () => {
      for (const policy of [/^Misfire/, /^Overlap/]) await page.getByLabel(policy).waitFor();
      await page.getByLabel(/^Cron/).fill("*/20 * * * *");
      await page.getByRole("dialog").getByText(":20").first().waitFor();
    });
    assert.equal((await schedule()).spec.cron, "*/20 * * * *");
    const before = await stage.app.count({ names: ["refresh-prices"] });
    await visited.act("Run once…", "Run once");
    await visited.shows("refresh-prices");
    assert.equal(await stage.app.count({ names: ["refresh-prices"] }), before + 1);
    visited.assertCalm();
  });

  test("all jobs of a group of failures are redriven, and no others", async () => {
    const dead = (name: string) => stage.app.count({ names: [name], states: ["dead"] });
    const others = await dead("import-feed");
    await using visited = await visit(stage.url, look);
    const { page } = visited;
    await visited.open("failures", "Failures");
    const row = page.getByRole("row").filter({ hasText: "the bank did not answer" });
    await row.getByRole("button", { name: "Redrive all…" }).click();
    await visited.confirm(/^Redrive \(1[0-9]\)/);
    assert.deepEqual([await dead("charge-card"), await dead("import-feed")], [0, others]);
    visited.assertCalm();
  });

  test("some jobs are selected and cancelled, and the others stay", async () => {
    const waiting = () => stage.app.count({ names: ["send-sms"], states: ["waiting"] });
    const before = await waiting();
    await using visited = await visit(stage.url, look);
    const { page } = visited;
    await visited.open("jobs?name=send-sms&state=waiting", "Jobs");
    for (const place of [0, 1])
      await page
        .getByRole("checkbox", { name: /^Select (?!this)/ })
        .nth(place)
        .check();
    await page.getByText("2 selected").waitFor();
    await visited.act("Cancel…", /^Cancel \(2\)/);
    assert.equal(await waiting(), before - 2);
    visited.assertCalm();
  });

  test("a number of many digits is shown and copied with all of them, and a long string is folded", async () => {
    const to = `{ "to": "${"x".repeat(2_000)}", "account": 9007199254740993 }`;
    const body = `{ "name": "send-newsletter", "id": "many-digits", "input": ${to} }`;
    const sent = { method: "POST", headers: { "Content-Type": "application/json" }, body };
    assert.equal((await fetch(`${stage.url}api/jobs`, sent)).status, 201);
    await using visited = await visit(stage.url, look);
    const { page } = visited;
    await visited.open("jobs/many-digits", "send-newsletter");
    await page.getByText("9007199254740993", { exact: true }).waitFor();
    assert.equal(await page.getByText("x".repeat(600)).count(), 0, "its end is not drawn");
    await page.getByRole("button", { name: "Show all 2,000 characters" }).click();
    await page.getByText("x".repeat(2_000)).waitFor();
    await visited.act("Edit and enqueue a copy…", "Enqueue");
    await page.waitForURL((url) => !url.pathname.endsWith("many-digits"));
    const copy = await (await fetch(`${stage.url}api${new URL(page.url()).pathname}`)).text();
    assert.match(copy, /"account":9007199254740993/);
    visited.assertCalm();
  });

  test("all that match and wait for their time are made due, by a task of the server", async () => {
    const later = await stage.app.enqueueMany("send-newsletter", [
      { input: { to: "a" }, delay: "1h", tags: ["later"] },
      { input: { to: "b" }, delay: "1h", tags: ["later"] },
    ]);
    await using visited = await visit(stage.url, look);
    await visited.open("jobs?tag=later&state=waiting", "Jobs");
    await visited.act("Run now…", /^Run now \(2\)/);
    for (const { id } of later) assert.ok((await now(id)).runAt.getTime() <= Date.now());
    assert.equal(await lastAct(), 'local run-now-all jobs:{"states":["waiting"],"tags":["later"]}');
    await visited.act("Set priority…", /^Set priority \(2\)/, async () => {
      await visited.page.getByLabel(/^Priority/).fill("9");
    });
    for (const { id } of later) assert.equal((await now(id)).priority, 9);
    visited.assertCalm();
  });
}
