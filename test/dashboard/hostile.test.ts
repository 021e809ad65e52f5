import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createEscapement, defineJob, Operations, UnrecoverableError } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { closeBrowser, skip, visit } from "./browser.ts";
import { type Stage, serve } from "./stage.ts";

/** Strings that mean harm where somebody takes them for markup, an address, a path or a format. */
const script = `<script>window.hacked = 1; alert(1)</script>`;
const image = `"><img src=x onerror="window.hacked = 2; alert(2)">`;
const link = "javascript:alert(document.domain)//";
const turned = "report\u202egpj.exe\u2066\u2069";
const climbing = "../../api/jobs/delete?all=1#%00%2e%2e/";
const prototype = "__proto__";
const long = "Ω".repeat(10_000);

const names = [script, image, link, turned, climbing, prototype, "Ω".repeat(128)];

describe("hostile strings", { skip, timeout: 600_000 }, () => {
  let stage: Stage;
  before(async () => {
    const jobs = names.map((name) =>
      defineJob<unknown>({
        name,
        queue: name,
        run: ({ log, progress }) => {
          log(`${script}${turned}\u0000`);
          progress({ [image]: script });
          const error = new UnrecoverableError(`${image} ${turned} \u0000 ${long}`);
          error.stack = `${script}\n${link}\u0000`;
          throw error;
        },
      }),
    );
    const app = createEscapement({ store: "memory:", jobs, log: silentLogger });
    for (const [n, job] of jobs.entries()) {
      const input = { [script]: image, url: link, "\u0000": `\u0000${turned}`, long, constructor: 1, n };
      await app.enqueue(job, input, { id: `${names[n]}-id`.slice(0, 255), tags: names });
      await app.schedule(names[n] ?? "", { cron: "0 3 * * *" }, job, input, { tags: names });
    }
    await app.start();
    for (const name of names)
      await app.result(`${name}-id`.slice(0, 255), { timeout: "60s" }).catch(() => undefined);
    const people = new Operations(app);
    for (const name of names) await people.pauseQueue(name, { actor: name, reason: image + turned });
    stage = await serve(app);
  });
  after(async () => {
    await closeBrowser();
    await stage.close();
  });

  test("they are inert on every screen: shown as text, run nowhere, and lead nowhere else", async () => {
    await using visited = await visit(stage.url);
    const { page } = visited;
    const screens = [
      ["", "Overview"],
      ["jobs", "Jobs"],
      [`jobs?name=${encodeURIComponent(script)}&tag=${encodeURIComponent(image)}`, "Jobs"],
      ["failures", "Failures"],
      ["queues", "Queues"],
      ["schedules", "Schedules"],
      ["guarantees", "Guarantees"],
      ["nodes", "Nodes and relay"],
      ["audit", "Audit"],
    ] as const;
    for (const [path, heading] of screens) {
      await visited.open(path, heading);
      assert.equal(await page.evaluate("window.hacked"), undefined, path);
      // Addresses that a browser would follow, of links, pictures and forms alike.
      const elsewhere = (await page.evaluate(
        `[...document.querySelectorAll("[href], [src], [action]")]
          .flatMap((one) => [one.href, one.src, one.action])
          .filter((value) => typeof value === "string" && value !== "" && !value.startsWith(document.baseURI))`,
      )) as string[];
      assert.deepEqual(elsewhere, [], path);
    }
    await page.goto(`${stage.url}jobs`);
    await page.getByRole("row").filter({ hasText: script }).first().waitFor();
    visited.assertCalm();
  });

  test("a job and a schedule of any name have their own screens, by links and by address", async () => {
    await using visited = await visit(stage.url);
    const { page } = visited;
    for (const name of names) {
      await visited.open(`jobs/${encodeURIComponent(`${name}-id`.slice(0, 255))}`, /./);
      await page.getByRole("heading", { name: "What happened" }).waitFor();
      await page.getByRole("heading", { name: "Input" }).waitFor();
      for (const stack of await page.getByText("Stack", { exact: true }).all()) await stack.click();
      await visited.open(`schedules/${encodeURIComponent(name)}`, /./);
      await page.getByRole("heading", { name: "Next times" }).waitFor();
      assert.equal(await page.evaluate("window.hacked"), undefined, name);
    }
    await visited.open("schedules", "Schedules");
    await page.getByRole("link", { name: climbing }).first().click();
    await page.getByRole("heading", { name: "Next times" }).waitFor();
    assert.ok(new URL(page.url()).pathname.startsWith("/schedules/"));
    visited.assertCalm();
  });

  test("characters that turn the direction of text are shown as what they are", async () => {
    await using visited = await visit(stage.url);
    await visited.open(`jobs/${encodeURIComponent(`${turned}-id`)}`, /report/);
    const heading = await visited.page.getByRole("heading", { level: 1 }).innerText();
    assert.doesNotMatch(heading, /[\u202a-\u202e\u2066-\u2069]/, JSON.stringify(heading));
    assert.match(heading, /U\+202E/);
  });

  test("actions on them reach the very job, and nothing beside it", async () => {
    await using visited = await visit(stage.url);
    const id = `${climbing}-id`;
    await visited.open(`jobs/${encodeURIComponent(id)}`, climbing);
    await visited.act("Redrive…", /^Redrive/);
    assert.equal((await stage.app.get(id))?.redrives, 1);
    assert.equal(await stage.app.count(), names.length, "nothing was deleted");
    visited.assertCalm();
  });
});
