import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Account, verdictOf } from "../../dashboard/src/screens/guarantee-verdict.ts";
import { closeBrowser, skip, visit } from "./browser.ts";
import { type Stage, serveDemo } from "./stage.ts";

function account(more: Partial<Account>): Account {
  const none = { ended: 0, retries: 0, reruns: 0, existing: 0, absorbed: 0, stale: 0, dead: 0, lost: 0 };
  return { name: "a", delivery: "at-least-once", ...none, ...more };
}

describe("the verdict on a guarantee", () => {
  test("at-most-once is kept while none ran twice, also where some are lost", () => {
    const once = (more: Partial<Account>) =>
      verdictOf("at-most-once", [account({ delivery: "at-most-once", ended: 45, ...more })]);
    const { isKept, facts } = once({ lost: 1 });
    assert.deepEqual([isKept, facts[0], facts[1]], [true, "0 ran twice", "1 lost with a reason"]);
    assert.equal(once({ reruns: 1 }).isKept, false);
    assert.equal(once({ retries: 1 }).isKept, false);
  });

  test("the others are kept while none is lost, however often they ran", () => {
    for (const delivery of ["at-least-once", "effectively-once"] as const) {
      const ran = account({ delivery, ended: 9, reruns: 3, retries: 7, stale: 1 });
      const { isKept, facts } = verdictOf(delivery, [ran, account({ delivery: "at-most-once", lost: 2 })]);
      assert.deepEqual(
        [isKept, facts],
        [true, ["0 lost", "3 run again after a fault", "1 stale outcome refused"]],
      );
      assert.equal(verdictOf(delivery, [{ ...ran, lost: 1 }]).isKept, false);
    }
  });

  test("where nothing has ended there is none", () => {
    assert.equal(verdictOf("at-least-once", [account({})]).isKept, null);
  });
});

describe("the screen of guarantees", { skip, timeout: 600_000 }, () => {
  const notice = "This is <b>staging</b>.";
  let stage: Stage;
  before(async () => {
    stage = await serveDemo({ insecure: true, notice });
  });
  after(async () => {
    await closeBrowser();
    await stage.close();
  });

  test("a card for each says whether it was kept, and one table what each job came to", async () => {
    await using visited = await visit(stage.url, { width: 400, colours: "dark" });
    const { page } = visited;
    await visited.open("guarantees", "Guarantees");
    const card = page.getByRole("region", { name: "at-least-once" });
    await card.getByText("✓ kept").waitFor();
    await card.getByText("1 run again after a fault").waitFor();
    await card.getByText("1 stale outcome refused").waitFor();
    await page.getByRole("region", { name: "effectively-once" }).getByText("no runs yet").waitFor();
    assert.equal(await page.getByRole("table").count(), 1);
    const row = page.getByRole("row").filter({ hasText: "resize-image" });
    assert.match(await row.innerText(), /at-least-once/);
    const proof = page.getByRole("region", { name: "The last proof" });
    await proof.getByText("npx escapement verify --duration 30s", { exact: true }).waitFor();
    await proof.getByRole("button", { name: "Copy the command" }).waitFor();
    visited.assertCalm();
  });

  test("what the server tells everybody is on every screen, as text", async () => {
    await using visited = await visit(stage.url);
    const { page } = visited;
    for (const [path, heading] of [
      ["", "Overview"],
      ["schedules/backup", "backup"],
      ["failures", "Failures"],
    ] as const) {
      await visited.open(path, heading);
      await page.getByRole("complementary", { name: "About this installation" }).getByText(notice).waitFor();
    }
    visited.assertCalm();
  });
});
