import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createEscapement, defineJob, UnrecoverableError } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { until } from "../../src/testing/until.ts";
import { closeBrowser, looks, skip, visit } from "./browser.ts";
import { type Stage, serve, serveDemo } from "./stage.ts";

const letter = defineJob<{ to: string }>({ name: "letter", queue: "letters" });
const answer = defineJob<null>({ name: "answer", queue: "letters" });
const gone = defineJob<null>({
  name: "gone",
  run: () => {
    throw new UnrecoverableError("the page is gone");
  },
});
const flaky = defineJob<null>({
  name: "flaky",
  retry: { attempts: 2, backoff: { delay: "1ms" } },
  run: ({ job, log }) => {
    log(`try ${job.attempt}`);
    throw new Error(`no luck at try ${job.attempt}`);
  },
});
const text = defineJob<null>({
  name: "text",
  delivery: "at-most-once",
  run: () => {
    throw new Error("no line");
  },
});
const slow = defineJob<null>({
  name: "slow",
  run: ({ progress, signal }) => {
    progress({ percent: 40 });
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  },
});

describe("the page of a job", { skip, timeout: 600_000 }, () => {
  let stage: Stage;
  before(async () => {
    const jobs = [letter, answer, gone, flaky, text, slow];
    const app = createEscapement({ store: "memory:", jobs, log: silentLogger });
    await app.start();
    stage = await serve(app);
  });
  after(async () => {
    await closeBrowser();
    await stage.close();
  });

  async function ended(definition: typeof gone): Promise<string> {
    const { id } = await stage.app.enqueue(definition, null);
    await stage.app.result(id, { timeout: "60s" }).catch(() => undefined);
    return id;
  }

  test("it says why a job is dead as a person would, and has no words of the command line", async () => {
    await using visited = await visit(stage.url);
    const { page } = visited;
    const why = page.getByRole("region", { name: "Why it is where it is" });
    for (const [definition, words] of [
      [gone, /a retry would not help/],
      [flaky, /All of its 2 attempts failed/],
      [text, /at-most-once, so it was not retried/],
    ] as const) {
      await visited.open(`jobs/${await ended(definition)}`, definition.name);
      await why.getByText(words).waitFor();
      assert.doesNotMatch(await page.getByRole("main").innerText(), /escapement /i);
    }
    visited.assertCalm();
  });

  test("it has a block for each attempt, in order, with its log; the last stack is open", async () => {
    const id = await ended(flaky);
    await using visited = await visit(stage.url);
    const { page } = visited;
    await visited.open(`jobs/${id}`, "flaky");
    const blocks = page.getByRole("region", { name: /^Attempt \d$/ });
    assert.equal(await blocks.count(), 2);
    for (const [place, n] of [1, 2].entries()) {
      const words = await blocks.nth(place).innerText();
      assert.match(words, new RegExp(`Attempt ${n}[^]*failed[^]*no luck at try ${n}[^]*try ${n}`));
      assert.equal(await blocks.nth(place).locator("details[open]").count(), n - 1);
    }
    assert.match(await blocks.nth(1).innerText(), /after \d+ ms|after [\d.]+ s/);
    visited.assertCalm();
  });

  for (const look of looks)
    test(`at ${look.width} px, ${look.colours}: a paused queue can be resumed from its job, and undone`, async () => {
      await stage.app.pauseQueue("letters");
      const { id } = await stage.app.enqueue(letter, { to: "Ada" });
      await using visited = await visit(stage.url, look);
      await visited.open(`jobs/${id}`, "letter");
      const queue = async () => (await stage.app.queues()).find(({ queue: name }) => name === "letters");
      await visited.act("Resume the queue…", "Resume");
      assert.equal((await queue())?.paused, false);
      await visited.page.getByRole("button", { name: "Undo" }).click();
      await until("it is paused again", async () => (await queue())?.paused === true);
      visited.assertCalm();
    });

  test("a blocked job names what it waits for, and leads there", async () => {
    const parent = await stage.app.enqueue(letter, { to: "Grace" }, { delay: "1h" });
    const { id } = await stage.app.enqueue(answer, null, { after: [parent] });
    await using visited = await visit(stage.url);
    const { page } = visited;
    await visited.open(`jobs/${id}`, "answer");
    const why = page.getByRole("region", { name: "Why it is where it is" });
    await why.getByText("It waits for 1 job before it.").waitFor();
    await why.getByRole("link", { name: `letter ${parent.id}` }).click();
    await visited.shows("letter");
    await page.getByRole("link", { name: `answer ${id}` }).waitFor();
    visited.assertCalm();
  });

  test("a healthy running job is no warning, and its percentage is a bar", async () => {
    const { id } = await stage.app.enqueue(slow, null);
    await using visited = await visit(stage.url);
    const { page } = visited;
    await visited.open(`jobs/${id}`, "slow");
    await page.getByText(/^It is running on/).waitFor();
    assert.equal(await page.locator(".notice.warn").count(), 0);
    await until("the bar is at 40 %", async () =>
      page.evaluate<boolean>("document.querySelector('progress')?.value === 0.4"),
    );
    visited.assertCalm();
    await stage.app.cancel(id);
  });

  test("one that is not known has a heading, a reason and a way back", async () => {
    await using visited = await visit(stage.url);
    await visited.open("jobs/nobody", "No such job");
    await visited.page.getByRole("link", { name: "To all jobs" }).click();
    await visited.shows("Jobs");
  });

  test("one that has ended is asked for once in a while, not every two seconds", async () => {
    const id = await ended(gone);
    await using visited = await visit(stage.url);
    const { page } = visited;
    let asked = 0;
    page.on("request", (request) => {
      if (request.url().endsWith(`/api/jobs/${id}`)) asked += 1;
    });
    await page.clock.install();
    await visited.open(`jobs/${id}`, "gone");
    await page.getByText(/a retry would not help/).waitFor();
    await page.clock.runFor(30_000);
    assert.ok(asked <= 2, `it asked ${asked} times`);
    await page.clock.runFor(60_000);
    await until("it asks again after a minute", () => asked > 1);
    visited.assertCalm();
  });

  test("a large input opens for editing at its beginning, and is saved in full", async () => {
    const lines = Array.from({ length: 30_000 }, (_, n) => `line ${n}`);
    const { id } = await stage.app.enqueue(letter, { to: "all", lines } as { to: string });
    await using visited = await visit(stage.url);
    const { page } = visited;
    await visited.open(`jobs/${id}`, "letter");
    await visited.act("Edit…", "Save", async () => {
      const area = page.getByLabel(/^Input, as JSON/);
      await area.waitFor();
      const place = "(({ scrollTop, selectionStart }) => [scrollTop, selectionStart])";
      assert.deepEqual(await page.evaluate(`${place}(document.querySelector("textarea"))`), [0, 0]);
      await area.fill(JSON.stringify({ to: "everybody", lines }));
    });
    const saved = await stage.app.get(id);
    const { to, lines: kept } = (saved ?? assert.fail("it is gone")).input as { to: string; lines: string[] };
    assert.deepEqual([to, kept.length], ["everybody", 30_000]);
    visited.assertCalm();
  });

  test("of a lost one it says who was silent, that nobody knows what came of it, and to check first", async () => {
    const demo = await serveDemo();
    try {
      await demo.app.start();
      let id = "";
      await until("a message is lost", async () => {
        const { jobs } = await demo.app.list({ states: ["lost"] });
        id = jobs[0]?.id ?? "";
        return id !== "";
      });
      await using visited = await visit(demo.url);
      const { page } = visited;
      await visited.open(`jobs/${id}`, "send-sms");
      const why = page.getByRole("region", { name: "Why it is where it is" });
      await why.getByText(/claimed it at .* and went silent; its lease ran out/).waitFor();
      await why.getByText(/Check outside before you redrive it/).waitFor();
      assert.doesNotMatch(await page.getByRole("main").innerText(), /dead at/);
      visited.assertCalm();
    } finally {
      await demo.close();
    }
  });
});
