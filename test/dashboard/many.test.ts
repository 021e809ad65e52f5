import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { createEscapement, defineJob } from "../../src/index.ts";
import { scratchFolder } from "../scratch.ts";
import { closeBrowser, looks, skip, visit } from "./browser.ts";
import { type Stage, serve } from "./stage.ts";

const many = 50_000;
/** They are many writes, on a machine that may have other work. */
const longMs = 5 * 60_000;
const letter = defineJob<{ n: number }>({ name: "letter" });
const other = defineJob<null>({ name: "other" });

describe("50,000 jobs that match", { skip, timeout: 600_000 }, () => {
  let stage: Stage;
  before(async () => {
    const file = join(scratchFolder("dashboard"), "many.db");
    const app = createEscapement({ store: `sqlite:${file}`, jobs: [letter, other] });
    await app.enqueueMany(
      letter,
      Array.from({ length: many }, (_, n) => ({ input: { n } })),
    );
    await app.enqueue(other, null);
    stage = await serve(app);
  });
  after(async () => {
    await closeBrowser();
    await stage.close();
  });

  for (const look of looks)
    test(`at ${look.width} px, ${look.colours}: a task is stopped, and the rest stays as it was`, async () => {
      await using visited = await visit(stage.url, look);
      const { page } = visited;
      await visited.open("jobs?name=letter&state=waiting", "Jobs");
      await page.getByRole("button", { name: "Set priority…" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel(/^Priority/).fill("9");
      const confirm = dialog.getByRole("button", { name: /^Set priority.*50,000/ });
      await confirm.click({ timeout: longMs });
      await dialog.getByRole("button", { name: "Stop" }).click();
      await dialog.waitFor({ state: "hidden", timeout: longMs });
      await page
        .getByRole("status")
        .getByText(/Stopped: the rest is as it was/)
        .waitFor();
      const { tasks } = (await (await fetch(`${stage.url}api/tasks`)).json()) as {
        tasks: { action: string; dryRun: boolean; state: string; matched: number }[];
      };
      const [task] = tasks.filter(({ dryRun }) => !dryRun);
      assert.deepEqual([task?.action, task?.state], ["priority", "stopped"]);
      assert.ok((task?.matched ?? many) < many, `it changed all ${many}`);
      visited.assertCalm();
    });

  test("they are counted before, and cancelled with their progress shown; others stay", async () => {
    await using visited = await visit(stage.url);
    const { page } = visited;
    await visited.open("jobs?name=letter&state=waiting", "Jobs");
    await page.getByRole("group", { name: "Actions" }).getByText("All that match").waitFor();
    await page.getByRole("button", { name: "Cancel…" }).click();
    const dialog = page.getByRole("dialog");
    const confirm = dialog.getByRole("button", { name: /^Cancel.*50,000/ });
    await confirm.waitFor({ timeout: longMs });
    assert.equal(
      await stage.app.count({ names: ["letter"], states: ["waiting"] }),
      many,
      "counting changes nothing",
    );
    await confirm.click();
    await dialog.getByRole("progressbar").waitFor();
    await dialog.getByText(/^[\d,]+ of 50,000$/).waitFor();
    await dialog.waitFor({ state: "hidden", timeout: longMs });
    await page
      .getByRole("status")
      .getByText(/50,000 cancelled/)
      .first()
      .waitFor();
    assert.equal(await stage.app.count({ names: ["letter"], states: ["cancelled"] }), many);
    assert.equal(await stage.app.count({ names: ["other"], states: ["waiting"] }), 1);
    visited.assertCalm();
  });
});
