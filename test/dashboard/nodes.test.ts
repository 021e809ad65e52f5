import { after, before, describe, test } from "node:test";
import { createEscapement, defineJob } from "../../src/index.ts";
import { closeBrowser, skip, visit } from "./browser.ts";
import { type Stage, serve } from "./stage.ts";

describe("the screen of nodes", { skip, timeout: 600_000 }, () => {
  let stage: Stage;
  before(async () => {
    stage = await serve(createEscapement({ store: "memory:", jobs: [defineJob({ name: "mail" })] }));
  });
  after(async () => {
    await closeBrowser();
    await stage.close();
  });

  test("jobs of a silent node stand as it last said, and those of a living one go on", async () => {
    await using visited = await visit(stage.url);
    const seenAt = new Date(Date.now() - 12 * 60_000).toISOString();
    const running = [{ id: "j", name: "send-sms", forMs: 3_000, leaseMs: 25_000 }];
    const roles = { roles: ["work"], queues: null, names: ["mail"], concurrency: 10, active: 1, ttlMs: null };
    const same = { host: "machine", pid: 7, version: "1.0.0", ...roles, startedAt: seenAt, seenAt, running };
    const nodes = [
      { ...same, id: "silent", alive: false },
      { ...same, id: "living", alive: true },
    ];
    await visited.page.route("**/api/nodes", (route) => route.fulfill({ json: { nodes } }));
    await visited.open("nodes", "Nodes and relay");
    const row = (id: string) => visited.page.getByRole("row").filter({ hasText: id });
    await row("silent").getByText("had run for 3 s then, lease ran out").waitFor();
    await row("living")
      .getByText(/^send-sms for 12 min/)
      .waitFor();
    visited.assertCalm();
  });
});
