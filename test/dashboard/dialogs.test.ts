import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import axe from "axe-core";
import { createEscapement, defineJob, type Escapement } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { until } from "../../src/testing/until.ts";
import { closeBrowser, looks, skip, type Visit, visit } from "./browser.ts";
import { type Stage, serve } from "./stage.ts";

const asPlanned = (): never => {
  throw new Error("as planned");
};
const importFeed = defineJob<null>({ name: "import-feed", retry: { attempts: 1 }, run: asPlanned });
const sendSms = defineJob<null>({
  name: "send-sms",
  delivery: "at-most-once",
  retry: { attempts: 1 },
  run: asPlanned,
});
const secondRun = /may have taken effect already/;

for (const { width, colours } of looks)
  describe(`dialogs at ${width} px, ${colours}`, { skip, timeout: 600_000 }, () => {
    let stage: Stage;
    let app: Escapement;
    before(async () => {
      app = createEscapement({ store: "memory:", jobs: [importFeed, sendSms], log: silentLogger });
      await app.start();
      const sent = [
        ...(await app.enqueueMany(importFeed, [{ input: null }, { input: null }])),
        await app.enqueue(sendSms, null),
      ];
      for (const job of sent) await app.result(job, { timeout: "60s" }).catch(() => undefined);
      await app.pauseQueue("default");
      stage = await serve(app);
    });
    after(async () => {
      await closeBrowser();
      await stage.close();
    });

    async function assertAxe({ page }: Visit): Promise<void> {
      await page.evaluate(axe.source);
      const found = await page.evaluate(
        "axe.run(document).then(({ violations }) => violations.map(({ id, help }) => id + ': ' + help))",
      );
      assert.deepEqual(found, []);
    }

    test("a dialog names what it touches, and warns of a second run only where there may be one", async () => {
      await using visited = await visit(stage.url, { width, colours });
      const { page } = visited;
      const dialog = page.getByRole("dialog");
      await visited.open("failures", "Failures");
      const group = (name: string) => page.getByRole("row").filter({ hasText: name });
      await group("import-feed").getByRole("button", { name: "Redrive all…" }).click();
      await dialog.getByRole("heading", { name: "Redrive 2 dead jobs of import-feed?" }).waitFor();
      await dialog.getByText(/as planned/).waitFor();
      const terms = dialog.getByRole("list", { name: "All jobs with" });
      for (const term of [/^state: dead$/, /^name: import-feed$/, /^failure group: /])
        await terms.getByText(term).waitFor();
      assert.equal(await dialog.getByText(secondRun).count(), 0);
      await assertAxe(visited);
      await page.keyboard.press("Escape");
      await group("send-sms").getByRole("button", { name: "Redrive all…" }).click();
      await dialog.getByText(secondRun).waitFor();
      await assertAxe(visited);
      await page.keyboard.press("Escape");
      await visited.open("jobs?state=dead", "Jobs");
      await page
        .getByRole("checkbox", { name: "Select this page" })
        .or(page.getByRole("checkbox"))
        .first()
        .waitFor();
      for (const box of await page.getByRole("checkbox", { name: /^Select (?!this)/ }).all())
        await box.check();
      await page.getByRole("button", { name: "Redrive…" }).click();
      await dialog.getByRole("heading", { name: "Redrive 3 dead jobs?" }).waitFor();
      await dialog.getByText(/^1 of them is at-most-once/).waitFor();
      visited.assertCalm();
    });

    test("a dialog asks in a sentence whether so many may be changed", async () => {
      await using visited = await visit(stage.url, { width, colours });
      const { page } = visited;
      for (const n of [1, 2])
        await app.enqueue(importFeed, null, { delay: "1h", tags: [`asked ${n}`, "asked"] });
      const asks = async (opener: string, question: string): Promise<void> => {
        await page.getByRole("main").getByRole("button", { name: opener, exact: true }).click();
        await page.getByRole("dialog", { name: question, exact: true }).waitFor();
        await page.keyboard.press("Escape");
      };
      await visited.open("jobs?tag=asked", "Jobs");
      await asks("Set priority…", "Set the priority of 2 jobs?");
      await asks("Run now…", "Run 2 jobs now?");
      await visited.open("jobs?state=waiting&tag=asked%201&name=import-feed", "Jobs");
      await asks("Cancel…", "Cancel 1 waiting job of import-feed?");
      await visited.open("jobs?state=dead&name=import-feed", "Jobs");
      await asks("Delete…", "Delete 2 dead jobs of import-feed?");
      visited.assertCalm();
    });

    test("some dead jobs are deleted, and the others stay", async () => {
      await using visited = await visit(stage.url, { width, colours });
      const { page } = visited;
      await visited.open("jobs?state=dead&name=import-feed", "Jobs");
      await page
        .getByRole("checkbox", { name: /^Select (?!this)/ })
        .first()
        .check();
      await visited.act("Delete…", "Delete (1)");
      await page.getByRole("status").getByText("Delete: 1 deleted.").waitFor();
      assert.equal(await app.count({ names: ["import-feed"], states: ["dead"] }), 1);
      visited.assertCalm();
    });

    test("limits that cannot be are said so where they are typed", async () => {
      await using visited = await visit(stage.url, { width, colours });
      const { page } = visited;
      await visited.open("queues", "Queues");
      await page.getByRole("button", { name: "Limits…" }).click();
      await page.getByLabel(/^Starts/).fill("5");
      await page.getByLabel("in each").fill("banana");
      const change = page.getByRole("button", { name: "Change" });
      assert.equal(await change.isDisabled(), true);
      assert.equal(await page.getByLabel("in each").getAttribute("aria-invalid"), "true");
      await assertAxe(visited);
      await page.getByLabel("in each").fill("2m");
      await visited.confirm("Change");
      assert.deepEqual((await app.queues())[0]?.rate, { limit: 5, perMs: 120_000 });
      visited.assertCalm();
    });

    test("what can be taken back offers it: a queue that was resumed is paused again", async () => {
      await using visited = await visit(stage.url, { width, colours });
      const { page } = visited;
      await visited.open("", "Overview");
      await page.getByText("The queue default is paused.").waitFor();
      await visited.act("Resume…", "Resume");
      assert.equal((await app.queues())[0]?.paused, false);
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("Undone.").waitFor();
      assert.equal((await app.queues())[0]?.paused, true);
      visited.assertCalm();
    });

    test("the switch goes from the system's colours to light to dark, and stays", async () => {
      await using visited = await visit(stage.url, { width, colours });
      const { page } = visited;
      await visited.open("", "Overview");
      const theme = (): Promise<unknown> => page.evaluate("document.documentElement.dataset.theme ?? null");
      const button = page.getByRole("button", { name: /^Theme:/ });
      for (const next of ["light", "dark"]) {
        await button.click();
        await until(`it is ${next}`, async () => (await theme()) === next);
      }
      await page.reload();
      await page.getByRole("button", { name: "Theme: dark" }).waitFor();
      await until("it is dark still", async () => (await theme()) === "dark");
      await button.click();
      await until("it is the system's", async () => (await theme()) === null);
    });

    test("updates are paused and go on; what has come since is announced, and shown when asked for", async () => {
      await using visited = await visit(stage.url, { width, colours });
      const { page } = visited;
      await visited.open("jobs?state=waiting", "Jobs");
      await app.enqueue(importFeed, null, { delay: "1h" });
      await page.reload();
      const links = page.locator("tbody tr a");
      await links.first().waitFor();
      const before = await links.count();
      await page.getByRole("button", { name: /Pause updates/ }).click();
      await app.enqueue(importFeed, null, { delay: "1h" });
      assert.equal(await links.count(), before);
      await page.getByRole("button", { name: /Resume updates/ }).click();
      await page.getByRole("button", { name: "Show 1 new job", exact: true }).click();
      await links.nth(before).waitFor();
      visited.assertCalm();
    });
  });
