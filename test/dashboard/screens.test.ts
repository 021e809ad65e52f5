import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import axe from "axe-core";
import { apiTokens } from "../../src/api/test/api-session.ts";
import { createEscapement } from "../../src/index.ts";
import { until } from "../../src/testing/until.ts";
import { closeBrowser, looks, skip, type Visit, visit } from "./browser.ts";
import { type Stage, serve, serveDemo } from "./stage.ts";

interface Finding {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/** What axe has to say against the page as it stands. */
async function findings({ page }: Visit): Promise<string[]> {
  await page.evaluate(axe.source);
  const violations = (await page.evaluate(
    "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)",
  )) as Finding[];
  return violations.map(
    ({ id, help, nodes }) => `${id}: ${help}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`,
  );
}

describe("every screen of the dashboard", { skip, timeout: 600_000 }, () => {
  let stage: Stage;
  let jobId = "";
  before(async () => {
    stage = await serveDemo();
    const { jobs } = await stage.app.list({ names: ["charge-card"], states: ["dead"] });
    jobId = jobs[0]?.id ?? assert.fail("nothing failed");
  });
  after(async () => {
    await closeBrowser();
    await stage.close();
  });

  const screens = (): readonly (readonly [path: string, heading: string])[] => [
    ["", "Overview"],
    ["jobs", "Jobs"],
    ["jobs?state=dead&name=import-feed", "Jobs"],
    [`jobs/${jobId}`, "charge-card"],
    ["failures", "Failures"],
    ["queues", "Queues"],
    ["schedules", "Schedules"],
    ["schedules/prices", "prices"],
    ["schedules/backup?span=quarter", "backup"],
    ["schedules/backup?span=day", "backup"],
    ["guarantees", "Guarantees"],
    ["nodes", "Nodes and relay"],
    ["audit", "Audit"],
  ];

  for (const { width, colours } of looks)
    test(`at ${width} px, ${colours}: shows its data, fits, is calm, and axe finds nothing`, async () => {
      await using visited = await visit(stage.url, { width, colours });
      for (const [path, heading] of screens()) {
        await visited.open(path, heading);
        assert.deepEqual(await findings(visited), [], path);
        const [needed, there] = (await visited.page.evaluate(
          "[document.documentElement.scrollWidth, innerWidth]",
        )) as number[];
        assert.ok((needed ?? 0) <= (there ?? 0), `${path} is ${needed} px wide, on ${there}`);
      }
      visited.assertCalm();
    });

  for (const { width, colours } of looks)
    test(`at ${width} px, ${colours}: what is not there or not allowed has a heading and a way on, and axe finds nothing`, async () => {
      await using visited = await visit(stage.url, { width, colours });
      const { page } = visited;
      for (const [path, heading, way] of [
        ["nowhere/at-all", "No such page", "To the overview"],
        ["schedules/nobody", "No such schedule", "To all schedules"],
        ["jobs/nobody", "No such job", "To all jobs"],
        ["jobs?state=banana", "Jobs", "Clear all filters"],
      ] as const) {
        await visited.open(path, heading);
        await page.getByRole("main").getByRole("link", { name: way, exact: true }).waitFor();
        assert.deepEqual(await findings(visited), [], path);
      }
      await page
        .getByRole("alert")
        .getByText(/^State must be one of blocked, waiting, /)
        .waitFor();
      const locked = await serve(createEscapement({ store: "memory:", jobs: [] }), { tokens: apiTokens });
      try {
        await page.goto(locked.url);
        await page.getByRole("heading", { level: 1, name: "Escapement" }).waitFor();
        await page.getByLabel("Token").waitFor();
        assert.deepEqual(await findings(visited), [], "sign-in");
      } finally {
        await locked.close();
      }
      // A browser puts each refusal on the console.
      assert.deepEqual(
        visited.problems.filter((problem) => !problem.startsWith("Failed to load resource")),
        [],
      );
    });

  test("at 400 px: the menu moves nothing, the states are all in sight, and values stand below each other", async () => {
    await using visited = await visit(stage.url, { width: 400 });
    const { page } = visited;
    const heights = new Set<number>();
    for (const [path, heading] of screens()) {
      await visited.open(path, heading);
      await page.getByRole("link", { name: /^Failures \d/ }).waitFor();
      await page.getByRole("link", { name: /^Queues \d/ }).waitFor();
      heights.add(Number(await page.evaluate("document.querySelector('.side').offsetHeight")));
    }
    assert.equal(heights.size, 1, `the menu is ${[...heights].join(" or ")} px high`);
    await visited.open("jobs", "Jobs");
    const [needed, there] = await page.evaluate<number[]>(
      "(({ scrollWidth, clientWidth }) => [scrollWidth, clientWidth])(document.querySelector('.tabs'))",
    );
    assert.ok((needed ?? 0) <= (there ?? 0), "a state is out of sight");
    for (const [path, heading] of [
      ["audit", "Audit"],
      ["nodes", "Nodes and relay"],
      ["guarantees", "Guarantees"],
    ] as const) {
      await visited.open(path, heading);
      const insets = await page.evaluate<number[]>(`[...document.querySelectorAll("td[data-label]")]
        .filter((cell) => cell.offsetParent !== null && cell.textContent.trim() !== "")
        .map((cell) => {
          const range = document.createRange();
          range.selectNodeContents(cell);
          return Math.round(Math.min(...[...range.getClientRects()].map(({ left }) => left)) - cell.getBoundingClientRect().left);
        })`);
      assert.ok(insets.length > 3);
      assert.equal(new Set(insets).size, 1, `${path}: ${insets.join(" ")}`);
    }
  });

  test("the text of a group of failures stands beside its figures", async () => {
    await using visited = await visit(stage.url);
    await visited.open("failures", "Failures");
    const row = visited.page.getByRole("row").filter({ hasText: "import-feed" });
    const text = await row.getByRole("link").first().boundingBox();
    const figure = await row.getByRole("img").boundingBox();
    const apart = Math.abs((text?.y ?? 0) - (figure?.y ?? 100));
    assert.ok(apart < 6, `${apart} px apart`);
  });

  test("a ledger cell says what became of its time, why, and leads to the job", async () => {
    await using visited = await visit(stage.url);
    await visited.open("schedules/backup", "backup");
    const cell = visited.page
      .getByRole("button", { name: /skipped: the previous job was still active/ })
      .first();
    await cell.click();
    await visited.page
      .getByRole("status")
      .getByText(/skipped: the previous job/)
      .first()
      .waitFor();
    await visited.page.getByRole("button", { name: /dead/ }).first().click();
    await visited.page
      .getByRole("link", { name: /job/i })
      .filter({ hasText: /^(Its|The|Open)/ })
      .first()
      .click();
    await visited.shows("back-up");
    await visited.page.getByText("the disk of the backup server is full").first().waitFor();
    visited.assertCalm();
  });

  test("the address bar is the filter, and the back button goes back", async () => {
    await using visited = await visit(stage.url);
    const { page } = visited;
    await visited.open("jobs?state=dead&name=charge-card", "Jobs");
    await page.getByRole("row").filter({ hasText: "the bank did not answer" }).first().waitFor();
    assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "charge-card");
    await page
      .getByRole("navigation", { name: "States" })
      .getByRole("link", { name: /^waiting/ })
      .click();
    await page.waitForURL(/state=waiting/);
    await page.goBack();
    await page.waitForURL(/state=dead/);
    await page.getByRole("row").filter({ hasText: "the bank did not answer" }).first().waitFor();
    visited.assertCalm();
  });

  test("by keyboard: ? shows the keys, g and a letter goes, / searches, j and Enter open a row", async () => {
    await using visited = await visit(stage.url);
    const { page } = visited;
    await visited.open("", "Overview");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await until("the keys are no longer the dialog's", () =>
      page.evaluate<boolean>("(document.activeElement?.closest('dialog') ?? null) === null"),
    );
    for (const key of ["g", "f"]) await page.keyboard.press(key);
    await visited.shows("Failures");
    await page.keyboard.press("/");
    await visited.shows("Jobs");
    const search = page.getByRole("searchbox");
    await search.waitFor();
    await until("the search has the focus", () =>
      page.evaluate<boolean>("document.activeElement?.type === 'search'"),
    );
    await search.fill("feed-7");
    await page.keyboard.press("Enter");
    await page.waitForURL(/text=feed-7/);
    await page.getByRole("row").filter({ hasText: "feed-7 is gone" }).waitFor();
    await page.getByRole("heading", { level: 1 }).click();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await visited.shows("import-feed");
    visited.assertCalm();
  });
});
