import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createEscapement, defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { closeBrowser, skip, visit } from "./browser.ts";
import { type Stage, serve } from "./stage.ts";

const letter = defineJob<{ n: number }>({ name: "letter", queue: "post" });

describe("a list of jobs is worked on", { skip, timeout: 600_000 }, () => {
  let tries = 0;
  const flaky = defineJob<null>({
    name: "flaky",
    retry: { attempts: 3, backoff: { type: "fixed", delay: "1ms" } },
    run: () => {
      tries += 1;
      if (tries < 2) throw new Error("the server is busy");
    },
  });
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const invoice = defineJob<{ customer: string }>({
    name: "invoice",
    queue: "books",
    concurrency: { key: ({ customer }) => customer, limit: 1 },
    run: () => released,
  });
  const once = defineJob<null>({ name: "once", queue: "post", delivery: "at-most-once" });
  let stage: Stage;
  before(async () => {
    const app = createEscapement({
      store: "memory:",
      jobs: [letter, flaky, invoice, once],
      log: silentLogger,
    });
    await app.start();
    await app.pauseQueue("post");
    await app.result(await app.enqueue(flaky, null), { timeout: "60s" });
    for (let n = 0; n < 45; n += 1) await app.enqueue(letter, { n });
    for (let n = 0; n < 2; n += 1) await app.enqueue(invoice, { customer: "ada" });
    stage = await serve(app);
  });
  after(async () => {
    release();
    await closeBrowser();
    await stage.close();
  });

  for (const width of [1280, 400])
    test(`at ${width} px: the actions stay in sight and move no row, and a click on a row opens its job`, async () => {
      await using visited = await visit(stage.url, { width });
      const { page } = visited;
      await visited.open("jobs", "Jobs");
      const row = page
        .getByRole("row")
        .filter({ has: page.getByRole("checkbox") })
        .nth(30);
      const actions = page.getByRole("group", { name: "Actions" });
      await row.waitFor();
      assert.equal(await actions.count(), 0, "nobody means all jobs there are");
      await row.scrollIntoViewIfNeeded();
      const top = async (): Promise<number> => Math.round((await row.boundingBox())?.y ?? 0);
      const before = await top();
      await row.getByRole("checkbox").check();
      await actions.getByText("1 selected").waitFor();
      assert.equal(await top(), before);
      const { y = 0, height = 0 } = (await actions.boundingBox()) ?? {};
      assert.ok(y > 0 && y + height <= 900, `the actions are at ${y}`);
      await page.keyboard.press("a");
      assert.match(String(await page.evaluate("document.activeElement.textContent")), /…$/);
      if (width > 1_000) {
        const head = await page.getByRole("columnheader", { name: "State" }).boundingBox();
        assert.equal(head?.y, 0, "the head stays");
      }
      await row.getByText("letter").click();
      await visited.shows("letter");
      visited.assertCalm();
    });

  test("from one moment to another: the address keeps it, and a span takes it back", async () => {
    await using visited = await visit(stage.url);
    const { page } = visited;
    const rows = page.getByRole("row").filter({ hasText: "letter" });
    await visited.open("jobs?name=letter", "Jobs");
    const [from, to] = [page.getByLabel("Enqueued from"), page.getByLabel("To", { exact: true })];
    await from.fill("2020-01-01T10:00");
    await to.fill("2020-01-02T10:30");
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByText("No job matches").waitFor();
    const asked = () => new URL(page.url()).searchParams;
    // By the clock of whoever looks.
    const instant = (text: string) => page.evaluate<string>(`new Date("${text}").toISOString()`);
    const [since, until] = [await instant("2020-01-01T10:00"), await instant("2020-01-02T10:30")];
    assert.deepEqual([asked().get("since"), asked().get("until")], [since, until]);
    await page.reload();
    await page.getByText("No job matches").waitFor();
    assert.deepEqual(
      [await from.inputValue(), await to.inputValue()],
      ["2020-01-01T10:00", "2020-01-02T10:30"],
    );
    await page.getByRole("link", { name: /^Remove until/ }).click();
    await rows.first().waitFor();
    assert.deepEqual([asked().get("since"), asked().get("until")], [since, null]);
    await page.getByLabel("Enqueued within").selectOption("an hour");
    assert.equal(await from.inputValue(), "");
    await page.getByRole("button", { name: "Search" }).click();
    await page.waitForURL(/since=1h/);
    await rows.first().waitFor();
    visited.assertCalm();
  });

  test("what went wrong before a success is a remark, and each time says of what it is", async () => {
    await using visited = await visit(stage.url);
    await visited.open("jobs?name=flaky", "Jobs");
    const row = visited.page.getByRole("row").filter({ hasText: "succeeded" });
    await row.getByText("after 1 retry").waitFor();
    assert.match(await row.innerText(), /ended (now|\d+ s ago)/);
    assert.equal(await visited.page.getByText("the server is busy").count(), 0);
    await visited.open("jobs?name=letter", "Jobs");
    await visited.page
      .getByRole("cell", { name: /^due (now|\d+ (s|min) ago)$/ })
      .first()
      .waitFor();
    visited.assertCalm();
  });

  test("a long id shows both its ends, and at-most-once has one attempt", async () => {
    const id = "{a-schedule-with-a-long-key}@2026-11-19T20:15:00.000Z";
    await stage.app.enqueue(once, null, { id });
    await using visited = await visit(stage.url);
    await visited.open("jobs?name=once", "Jobs");
    const row = visited.page.getByRole("row").filter({ hasText: "once" });
    await row.getByRole("link", { name: /^\{a-schedule-wit….*2026-11-19T20:15:00\.000Z$/ }).waitFor();
    await row.getByRole("cell", { name: /^[01]\/1$/ }).waitFor();
    visited.assertCalm();
  });

  test("a queue says of which job it speaks where a key holds one back", async () => {
    await using visited = await visit(stage.url);
    const { page } = visited;
    await visited.open("queues", "Queues");
    const row = page.getByRole("row").filter({ hasText: "books" });
    const held = row.getByText("What holds its oldest job back?");
    await held.waitFor();
    // It opens by itself if the job has been due for long.
    if (!(await row.locator("details[open]").isVisible())) await held.click();
    await row.getByText(/The key ada of invoice is full: 1 job running\./).waitFor();
    await row.getByText("Others may wait for other reasons.").waitFor();
    visited.assertCalm();
  });

  test("a paused queue says what holds it back without a click", async () => {
    await using visited = await visit(stage.url);
    await visited.open("queues", "Queues");
    const row = visited.page.getByRole("row").filter({ hasText: "post" });
    await row.getByText("No job starts until it is resumed.").waitFor();
    await row.getByRole("button", { name: "Resume…" }).waitFor();
    visited.assertCalm();
  });
});
