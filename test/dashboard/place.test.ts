import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createEscapement, defineJob } from "../../src/index.ts";
import { until } from "../../src/testing/until.ts";
import { closeBrowser, skip, visit } from "./browser.ts";
import { type Stage, serve } from "./stage.ts";

const letter = defineJob<{ n: number }>({ name: "letter" });

describe("a list of jobs keeps its place", { skip, timeout: 600_000 }, () => {
  let stage: Stage;
  before(async () => {
    const app = createEscapement({ store: "memory:", jobs: [letter] });
    await enqueue(app, 120);
    stage = await serve(app);
  });
  after(async () => {
    await closeBrowser();
    await stage.close();
  });

  async function enqueue(app: Stage["app"], many: number): Promise<void> {
    await app.enqueueMany(
      letter,
      Array.from({ length: many }, (_, n) => ({ input: { n } })),
    );
  }

  for (const colours of ["light", "dark"] as const)
    test(`through a job and back: the rows, the selection, the scroll and the focus, ${colours}`, async () => {
      await using visited = await visit(stage.url, { width: colours === "light" ? 1280 : 400, colours });
      const { page } = visited;
      await visited.open("jobs?name=letter", "Jobs");
      const links = page.locator("tbody tr a");
      await links.nth(40).waitFor();
      const addresses = (): Promise<string[]> =>
        page.evaluate("[...document.querySelectorAll('tbody tr a')].map((one) => one.getAttribute('href'))");
      const top = async (): Promise<number> => Math.round((await links.nth(40).boundingBox())?.y ?? 0);
      const before = await addresses();
      const boxes = page.getByRole("checkbox", { name: /^Select (?!this)/ });
      for (const place of [38, 39]) await boxes.nth(place).check();
      await links.nth(40).focus();
      assert.ok(Number(await page.evaluate("scrollY")) > 0, "the row is below the fold");
      const left = await top();
      // What comes while one looks at the job does not move the rows.
      await enqueue(stage.app, 3);
      await page.keyboard.press("Enter");
      await visited.shows("letter");
      await until("the job is shown from its beginning", async () => (await page.evaluate("scrollY")) === 0);
      await page.goBack();
      await visited.shows("Jobs");
      await page.getByText("2 selected").waitFor();
      await until("the row is where it was", async () => (await top()) === left);
      assert.deepEqual(await addresses(), before);
      assert.equal(await page.evaluate("document.activeElement.getAttribute('href')"), before[40]);
      await page.getByRole("button", { name: /^Show \d+ new jobs/ }).waitFor();
      // A link to the same list is not a way back.
      await page.getByRole("link", { name: "Overview" }).click();
      await visited.shows("Overview");
      await page.getByRole("navigation").getByRole("link", { name: /^Jobs/ }).click();
      await visited.shows("Jobs");
      await links.first().waitFor();
      assert.equal(await page.getByText("2 selected").count(), 0);
      assert.equal(await page.evaluate("scrollY"), 0);
      visited.assertCalm();
    });

  test("the selection goes along to the next page, and ends with another filter", async () => {
    await using visited = await visit(stage.url);
    const { page } = visited;
    await visited.open("jobs?name=letter", "Jobs");
    await page
      .getByRole("checkbox", { name: /^Select (?!this)/ })
      .first()
      .check();
    await page.getByRole("link", { name: "Older" }).click();
    await page.waitForURL(/cursor/);
    await page.getByText("1 selected").waitFor();
    await page
      .getByRole("navigation", { name: "States" })
      .getByRole("link", { name: /^waiting/ })
      .click();
    await page.waitForURL(/state=waiting/);
    await page.getByText("1 selected").waitFor({ state: "hidden" });
    visited.assertCalm();
  });
});
