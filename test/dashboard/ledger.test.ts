import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Page } from "playwright-core";
import { localTime } from "../../dashboard/src/screens/ledger-time.ts";
import { Operations } from "../../src/index.ts";
import { closeBrowser, looks, skip, visit } from "./browser.ts";
import { type Stage, serveDemo } from "./stage.ts";

const hour = 3_600_000;

describe("the ledger", { skip, timeout: 600_000 }, () => {
  let stage: Stage;
  before(async () => {
    stage = await serveDemo();
  });
  after(async () => {
    await closeBrowser();
    await stage.close();
  });

  /** Answers for a schedule as if it had fired every so often for 200 days. Returns how often it was asked. */
  async function pretend(page: Page, everyMs: number): Promise<() => number> {
    let asked = 0;
    const beginning = Date.now() - 200 * 24 * hour;
    await page.route("**/api/schedules/backup/occurrences?*", (route) => {
      asked += 1;
      const words = new URL(route.request().url()).searchParams;
      const [from, to] = ["from", "to"].map((word) => Date.parse(words.get(word) ?? ""));
      const end = Math.min(to ?? 0, Date.now());
      const times: number[] = [];
      for (
        let at = Math.ceil(end / everyMs - 1) * everyMs;
        at >= Math.max(from ?? 0, beginning);
        at -= everyMs
      ) {
        if (times.length === Number(words.get("limit"))) break;
        times.unshift(at);
      }
      const occurrences = times.map((time) => {
        const fireAt = new Date(time).toISOString();
        // At noon one fails.
        const [fate, jobId] = [time % (24 * hour) === 12 * hour ? "dead" : "succeeded", `job-${time}`];
        const same = { plannedAt: fireAt, claimedAt: fireAt, finishedAt: fireAt, plannedBy: "n", node: "n" };
        const rest = { key: "backup", until: null, count: 1, reason: null, attempt: 1, lateMs: 0 };
        return { ...rest, ...same, fireAt, fate, jobId };
      });
      return route.fulfill({ contentType: "application/json", body: JSON.stringify({ occurrences }) });
    });
    return () => asked;
  }

  test("what happened at one time of day stands in one column", async () => {
    await using visited = await visit(stage.url);
    const { page } = visited;
    await visited.open("schedules/backup", "backup");
    // Twenty hours ago the backup was slow: two are skipped. Where they stand is said by the axis above them.
    const cells = page.getByRole("button", { name: /skipped: the previous job/ });
    await cells.first().waitFor();
    const axis = page.locator(".line.marks .marks-row");
    const { x = 0, width = 0 } = (await axis.boundingBox()) ?? {};
    const ledger = await stage.app.occurrences("backup");
    const skipped = ledger.filter(({ reason }) => reason?.startsWith("overlap") === true);
    assert.ok(skipped.length > 0);
    for (const { fireAt } of skipped) {
      const { hour: at } = localTime(fireAt.getTime(), "UTC");
      const label = new RegExp(` ${String(at).padStart(2, "0")}:00:00 UTC: skipped: the previous job`);
      const box = await page.getByRole("button", { name: label }).first().boundingBox();
      const middle = (box?.x ?? 0) + (box?.width ?? 0) / 2;
      assert.equal(Math.floor(((middle - x) / width) * 24), at, `the cell of ${fireAt.toISOString()}`);
    }
    visited.assertCalm();
  });

  test("the arrow keys go from one to the next, and Enter says what became of it", async () => {
    await using visited = await visit(stage.url);
    const { page } = visited;
    await visited.open("schedules/prices", "prices");
    const cells = page.locator("[data-slot]");
    await cells.first().waitFor();
    assert.equal(await page.locator('[data-slot][tabindex="0"]').count(), 1, "one stop of the tab key");
    await cells.first().focus();
    await page.keyboard.press("ArrowRight");
    const label = await cells.nth(1).getAttribute("aria-label");
    await page.keyboard.press("Enter");
    await page.getByRole("status").getByText(`${label}.`).waitFor();
    visited.assertCalm();
  });

  test("a quarter of every 15 minutes is there in full, one cell a day, and a click opens the day", async () => {
    await using visited = await visit(stage.url);
    const { page } = visited;
    const asked = await pretend(page, hour / 4);
    await visited.open("schedules/backup?span=quarter", "backup");
    await page.getByText("Reading further back…").waitFor({ state: "hidden" });
    const full = page.getByRole("link", { name: /: 96 occurrences: 1 dead; 95 ran in time$/ });
    const days = await full.count();
    assert.ok(days >= 12 * 7 - 1, `${days} full days`);
    assert.ok(asked() < 40, `it asked ${asked()} times`);
    await full.last().click();
    await page.waitForURL(/span=day&day=\d{4}-\d\d-\d\d/);
    await page.getByText("Reading further back…").waitFor({ state: "hidden" });
    assert.equal(await page.locator("[data-slot]").count(), 96);
    visited.assertCalm();
  });

  test("a quarter has the legend's colours, counts what ran beside a failure, and tells before from nothing", async () => {
    await using visited = await visit(stage.url);
    const { page } = visited;
    const made = Date.now() - 20 * 24 * hour;
    await page.route("**/api/schedules/backup", async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ json: { ...(await answer.json()), createdAt: new Date(made).toISOString() } });
    });
    await visited.open("schedules/backup?span=quarter", "backup");
    await page.getByText("Reading further back…").waitFor({ state: "hidden" });
    const ground = (selector: string) =>
      page.evaluate<string>(`getComputedStyle(document.querySelector("${selector}")).backgroundColor`);
    assert.equal(await ground(".day-cell.bad"), await ground(".legend .swatch.bad"));
    const failed = page.locator(".day-cell.bad").first();
    assert.match(await failed.innerText(), /✕\s1\s*✓\s\d+/);
    const [before, nothing] = [page.locator(".day-cell.before"), page.locator(".day-cell.none")];
    assert.ok((await before.count()) > 60);
    const empty = await nothing.count();
    assert.ok(empty >= 18 && empty <= 20, `${empty} days with nothing`);
    assert.match((await nothing.first().getAttribute("title")) ?? "", /nothing was due$/);
    assert.match((await before.first().getAttribute("title")) ?? "", /before the schedule was made$/);
    // The demo need not have had a whole good day.
    await page.evaluate(
      "document.querySelector('.week').append(Object.assign(document.createElement('i'), { className: 'day-cell good' }))",
    );
    assert.equal(await ground(".day-cell.good"), await ground(".legend .swatch.good"));
    visited.assertCalm();
  });

  test("a day of every 3 seconds has a line for each hour, and one minute opens into its occurrences", async () => {
    await using visited = await visit(stage.url);
    const { page } = visited;
    await pretend(page, 3_000);
    const yesterday = localTime(Date.now() - 24 * hour, "UTC").day;
    await visited.open(`schedules/backup?span=day&day=${yesterday}`, "backup");
    await page.getByText("Reading further back…").waitFor({ state: "hidden" });
    assert.equal(await page.locator("[data-slot]").count(), 24 * 60);
    const worst = page.getByRole("button", { name: /12:00:00: 20 occurrences: 1 dead; 19 ran in time$/ });
    assert.deepEqual([await worst.getAttribute("class"), await worst.textContent()], ["bad", "✕20"]);
    await page
      .getByRole("button", { name: /: 20 occurrences: 20 ran in time$/ })
      .first()
      .click();
    const each = page.getByRole("group", { name: "Each of them" }).getByRole("button");
    assert.equal(await each.count(), 20);
    await each.nth(3).click();
    await page.getByRole("status").getByRole("link", { name: "Its job" }).waitFor();
    visited.assertCalm();
  });

  test("more than can be read is said so, and a date leads to what is older", async () => {
    await using visited = await visit(stage.url);
    const { page } = visited;
    await pretend(page, 3_000);
    await visited.open("schedules/backup?span=week", "backup");
    await page.getByText("There are too many to read them all.").waitFor();
    const day = localTime(Date.now() - 5 * 24 * hour, "UTC").day;
    await page.getByRole("link", { name: "Day", exact: true }).click();
    await page.getByLabel("Go to a date").fill(day);
    await page.waitForURL(new RegExp(`span=day&day=${day}`));
    await page.getByText("Reading further back…").waitFor({ state: "hidden" });
    await page.getByText("There are too many to read them all.").waitFor({ state: "hidden" });
    assert.equal(await page.locator("[data-slot]").count(), 24 * 60);
    await page.getByRole("link", { name: "The day before" }).click();
    await page.waitForURL(
      (url) => url.searchParams.get("day") === localTime(Date.parse(day) - hour, "UTC").day,
    );
    visited.assertCalm();
  });

  for (const look of looks) {
    const on = `at ${look.width} px, ${look.colours}`;

    test(`${on}: the list says a rule in words, what the last one came to, and pauses a schedule`, async () => {
      await using visited = await visit(stage.url, look);
      const { page } = visited;
      await visited.open("schedules", "Schedules");
      const row = page
        .getByRole("row")
        .filter({ has: page.getByRole("link", { name: "prices", exact: true }) });
      await row.getByText("every 15 minutes, Europe/Berlin").waitFor();
      await page.getByText("every hour, UTC").waitFor();
      await row.getByText(/^✓ ran|^↻ ran/).waitFor();
      assert.ok(
        (await row.getByRole("group", { name: "The last 24 hours" }).getByRole("link").count()) >= 23,
      );
      await row.getByRole("button", { name: "Pause…" }).click();
      await visited.confirm("Pause");
      await row.getByText("paused", { exact: false }).first().waitFor();
      assert.equal((await stage.app.getSchedule("prices"))?.paused, true);
      await row.getByRole("button", { name: "Resume…" }).click();
      await visited.confirm("Resume");
      assert.equal((await stage.app.getSchedule("prices"))?.paused, false);
      visited.assertCalm();
    });

    test(`${on}: a schedule that was removed is made again as it was`, async () => {
      const rule = { cron: "0 4 * * *", timezone: "Europe/Berlin", overlap: "skip" } as const;
      const options = { priority: 4, tags: ["night"], attempts: 7, expireIn: "2h" } as const;
      await stage.app.schedule("nightly", rule, "back-up", { database: "x" }, options);
      await stage.app.pauseSchedule("nightly");
      const schedule = async () => {
        const found = (await stage.app.getSchedule("nightly")) ?? assert.fail("it is gone");
        const { version: _v, createdAt: _c, updatedAt: _u, ...rest } = found;
        return rest;
      };
      const before = await schedule();
      assert.deepEqual([before.tags, before.attempts, before.expireInMs], [["night"], 7, 2 * hour]);
      await using visited = await visit(stage.url, look);
      const { page } = visited;
      await visited.open("schedules/nightly", "nightly");
      await visited.act("Remove…", "Remove", () => page.getByText(/You can undo this/).waitFor());
      await visited.shows("Schedules");
      assert.equal(await stage.app.getSchedule("nightly"), null);
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("Undone.").waitFor();
      assert.deepEqual(await schedule(), before);
      await visited.shows("nightly");
      visited.assertCalm();
    });
  }

  test("the removal of a schedule that counts is not offered to be undone", async () => {
    await stage.app.schedule("thrice", { every: "1d", limit: 3 }, "back-up", { database: "x" });
    await using visited = await visit(stage.url);
    const { page } = visited;
    await visited.open("schedules/thrice", "thrice");
    await visited.act("Remove…", "Remove", () => page.getByText(/cannot be undone here/).waitFor());
    await visited.shows("Schedules");
    await page.getByText("thrice was removed.").waitFor();
    assert.equal(await page.getByRole("button", { name: "Undo" }).count(), 0);
    visited.assertCalm();
  });

  test("a schedule is removed, with the reason in the audit log; its jobs stay", async () => {
    await using visited = await visit(stage.url);
    await visited.open("schedules/backup", "backup");
    const before = await stage.app.count({ names: ["back-up"] });
    await visited.act("Remove…", "Remove");
    await visited.shows("Schedules");
    assert.equal(await stage.app.getSchedule("backup"), null);
    assert.equal(await stage.app.count({ names: ["back-up"] }), before);
    const { entries } = await new Operations(stage.app).audit({}, { limit: 1 });
    assert.deepEqual(
      entries.map(({ action, target, reason }) => [action, target, reason]),
      [["remove-schedule", "schedule:backup", "because of a test"]],
    );
    visited.assertCalm();
  });
});
