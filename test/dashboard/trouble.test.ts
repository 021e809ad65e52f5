import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { apiTokens, tokens } from "../../src/api/test/api-session.ts";
import { createEscapement, defineJob, Operations } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { until } from "../../src/testing/until.ts";
import { closeBrowser, skip, visit } from "./browser.ts";
import { type Stage, serve } from "./stage.ts";

const fail = defineJob<{ n: number }>({
  name: "fail",
  retry: { attempts: 1 },
  run: () => {
    throw new Error("as planned");
  },
});
const each = defineJob<null>({ name: "each" });
const later = defineJob<null>({ name: "later" });

describe("a dashboard in trouble", { skip, timeout: 600_000 }, () => {
  let stage: Stage;
  let dead: string[] = [];
  before(async () => {
    const app = createEscapement({ store: "memory:", jobs: [fail, later, each], log: silentLogger });
    await app.start();
    dead = (
      await app.enqueueMany(
        fail,
        Array.from({ length: 6 }, (_, n) => ({ input: { n } })),
      )
    ).map(({ id }) => id);
    for (const id of dead) await app.result(id, { timeout: "60s" }).catch(() => undefined);
    await app.enqueue(later, null, { delay: "1h" });
    await app.schedule("nightly", { cron: "0 3 * * *" }, each, null);
    await app.pauseQueue("default");
    stage = await serve(app, { tokens: apiTokens, basePath: "/ops/escapement" });
  });
  after(async () => {
    await closeBrowser();
    await stage.close();
  });

  test("it asks for a token, says when one is refused, and keeps none in a cookie", async () => {
    await using visited = await visit(stage.url);
    const { page } = visited;
    await page.goto(stage.url);
    await page.getByLabel("Token").fill("wrong-0123456789abcdef01234");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").getByText("not accepted").waitFor();
    await page.getByLabel("Token").fill(tokens.read);
    await page.getByRole("button", { name: "Sign in" }).click();
    await visited.shows("Overview");
    assert.deepEqual(await page.context().cookies(), []);
    await page.reload();
    await visited.shows("Overview");
    for (const name of ["Jobs", "Queues", "Audit"]) {
      await page
        .getByRole("navigation", { name: "Screens" })
        .getByRole("link", { name: new RegExp(`^${name}`) })
        .click();
      await visited.shows(name);
      assert.ok(new URL(page.url()).pathname.startsWith("/ops/escapement/"), "it stays below its mount");
    }
  });

  test("whoever may only read sees no action, and is refused when they call one all the same", async () => {
    await using visited = await visit(stage.url, { token: tokens.read });
    const { page } = visited;
    for (const [path, heading] of [
      ["", "Overview"],
      ["jobs?state=dead", "Jobs"],
      [`jobs/${dead[0]}`, "fail"],
      ["failures", "Failures"],
      ["queues", "Queues"],
      ["schedules", "Schedules"],
      ["schedules/nightly", "nightly"],
    ] as const) {
      await visited.open(path, heading);
      await page
        .getByRole("main")
        .getByText(/fail|default|nightly/)
        .first()
        .waitFor();
      assert.equal(await page.getByRole("main").getByRole("button", { name: /…$/ }).count(), 0, path);
      assert.equal(await page.getByRole("checkbox").count(), 0, path);
    }
    visited.assertCalm();
    for (const [method, action] of [
      ["POST", "queues/default/resume"],
      ["POST", "schedules/nightly/pause"],
      ["POST", "schedules/nightly/trigger"],
      ["POST", "schedules/nightly/backfill"],
      ["DELETE", "schedules/nightly"],
    ]) {
      const refused = await page.evaluate(
        `fetch("api/${action}", { method: "${method}", headers: { Authorization: "Bearer " + sessionStorage.getItem("escapement-token") } }).then(({ status }) => status)`,
      );
      assert.equal(refused, 403, action);
    }
    assert.equal((await stage.app.queues())[0]?.paused, true);
    assert.equal((await stage.app.getSchedule("nightly"))?.paused, false);
  });

  test("a role between may operate, and neither delete nor set limits", async () => {
    await using visited = await visit(stage.url, { token: tokens.operate });
    const { page } = visited;
    await visited.open(`jobs/${dead[0]}`, "fail");
    await page.getByRole("button", { name: "Redrive…" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Delete…" }).count(), 0);
    await visited.open("queues", "Queues");
    await page.getByRole("button", { name: "Resume…" }).first().waitFor();
    assert.equal(await page.getByRole("button", { name: "Limits…" }).count(), 0);
    await visited.open("schedules/nightly", "nightly");
    await page.getByRole("button", { name: "Backfill…" }).waitFor();
    for (const name of ["Edit the rule…", "Remove…"])
      assert.equal(await page.getByRole("button", { name }).count(), 0, name);
    visited.assertCalm();
  });

  test("an API that fails or cannot be reached is said so, and the page recovers by itself or when asked", async () => {
    await using visited = await visit(stage.url, { token: tokens.admin });
    const { page } = visited;
    const api = "**/api/failures*";
    const problem = {
      type: "about:blank",
      title: "x",
      status: 503,
      code: "store-busy",
      detail: "the store is busy",
    };
    await page.route(api, (route) =>
      route.fulfill({ status: 503, contentType: "application/problem+json", body: JSON.stringify(problem) }),
    );
    await page.goto(`${stage.url}failures`);
    await page.getByRole("alert").getByText("the store is busy").waitFor();
    await page.unroute(api);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("row").filter({ hasText: "as planned" }).waitFor();
    // What was there stays, and says that it is old.
    await page.route(api, (route) => route.abort());
    await page.getByText(/Not up to date/).waitFor();
    await page.getByRole("row").filter({ hasText: "as planned" }).waitFor();
    await page.unroute(api);
    await page.getByText(/Not up to date/).waitFor({ state: "hidden" });
  });

  test("a slow API is said so, and what it answers in the end is shown", async () => {
    await using visited = await visit(stage.url, { token: tokens.admin });
    const { page } = visited;
    let release = (): void => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route("**/api/queues*", async (route) => {
      await released;
      await route.continue();
    });
    await page.goto(`${stage.url}queues`);
    await page.getByText(/server is slow/).waitFor();
    release();
    await page.getByRole("link", { name: "default" }).first().waitFor();
    await page.getByText(/server is slow/).waitFor({ state: "hidden" });
    visited.assertCalm();
  });

  test("an action that fails says that it was not done, and changes nothing", async () => {
    await using visited = await visit(stage.url, { token: tokens.admin });
    const { page } = visited;
    await visited.open("queues", "Queues");
    await page.route("**/api/queues/*/resume", (route) => route.abort());
    await page.getByRole("button", { name: "Resume…" }).first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Resume", exact: true }).click();
    await dialog.getByRole("alert").waitFor();
    assert.equal((await stage.app.queues())[0]?.paused, true);
    await page.unroute("**/api/queues/*/resume");
    await dialog.getByRole("button", { name: "Resume", exact: true }).click();
    await dialog.waitFor({ state: "hidden" });
    assert.equal((await stage.app.queues())[0]?.paused, false);
    await stage.app.pauseQueue("default");
  });

  test("two people who redrive one job at once redrive it once, and the second is told", async () => {
    const id = dead[1] ?? "";
    await using ann = await visit(stage.url, { token: tokens.admin });
    await using bob = await visit(stage.url, { token: tokens.operate });
    for (const { page, open } of [ann, bob].map((one) => ({
      page: one.page,
      open: () => one.open(`jobs/${id}`, "fail"),
    }))) {
      await open();
      await page.getByRole("button", { name: "Redrive…" }).click();
      await page.getByRole("dialog").waitFor();
    }
    await ann.confirm(/^Redrive/);
    await bob.confirm(/^Redrive/);
    await bob.page
      .getByRole("status")
      .getByText(/not in a state|terminal|refused|waiting/i)
      .first()
      .waitFor();
    const job = await stage.app.get(id);
    assert.deepEqual([job?.state, job?.redrives], ["waiting", 1]);
    const { entries } = await new Operations(stage.app).audit({ targets: [`job:${id}`] });
    assert.deepEqual(entries.map(({ actor }) => actor).sort(), ["admin-person", "operate-person"]);
    bob.assertCalm();
  });

  test("nothing is asked while the tab is hidden, and at once when it is seen again", async () => {
    await using visited = await visit(stage.url, { token: tokens.admin });
    const { page } = visited;
    let [asked, answered] = [0, 0];
    const answer = (): void => {
      answered += 1;
    };
    page.on("request", () => {
      asked += 1;
    });
    page.on("requestfinished", answer).on("requestfailed", answer);
    await page.clock.install();
    for (const [path, heading] of [
      ["", "Overview"],
      ["jobs", "Jobs"],
      [`jobs/${dead[2]}`, "fail"],
      ["queues", "Queues"],
    ] as const) {
      await visited.open(path, heading);
      await hide(true);
      // What was under way may still be answered, and the answer may lead to one more question.
      await until(`${heading} is at rest`, async () => {
        const before = asked;
        if (answered < before) return false;
        await page.clock.runFor(1_000);
        return asked === before;
      });
      const before = asked;
      await page.clock.runFor(120_000);
      assert.equal(asked, before, `${heading} asked while it was hidden`);
      await hide(false);
      await until(`${heading} asks again`, async () => {
        await page.clock.runFor(1_000);
        return asked > before;
      });
    }

    async function hide(hidden: boolean): Promise<void> {
      await page.evaluate(
        `Object.defineProperty(document, "hidden", { configurable: true, get: () => ${hidden} });
         Object.defineProperty(document, "visibilityState", { configurable: true, get: () => "${hidden ? "hidden" : "visible"}" });
         document.dispatchEvent(new Event("visibilitychange"));`,
      );
    }
  });
});
