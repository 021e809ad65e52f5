import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createEscapement, defineJob } from "../../src/index.ts";
import { until } from "../../src/testing/until.ts";
import { closeBrowser, skip, type Visit, visit } from "./browser.ts";
import { type Stage, serve } from "./stage.ts";

const now = "2026-11-18T12:00:30.000Z";
const minuteMs = 60_000;
const lateBoundsMs = [10, 100, 1_000];

const node = {
  id: "node-1",
  host: "machine",
  pid: 7,
  version: "1.0.0",
  roles: ["work"],
  queues: null,
  names: ["mail"],
  concurrency: 10,
  active: 0,
  ttlMs: null,
  startedAt: "2026-11-18T11:00:00.000Z",
  seenAt: now,
  alive: true,
};
const nobodys = defineJob<null>({ name: "nobodys" });
const failures = { groups: [], count: 0, looked: 0, isPartial: false, from: null, to: null };
const quiet = { now, counts: [] as object[], queues: [] as object[], nodes: [node] as object[], failures };

/** What ended in a minute, by how long ago the minute began. */
function ended(agoMs: number, succeeded: number, lateMaxMs = 5): object {
  return {
    at: new Date(Date.parse("2026-11-18T12:00:00Z") - agoMs).toISOString(),
    ...{ succeeded, dead: 0, lost: 0, cancelled: 0, failed: 0, crashed: 0, snoozed: 0 },
    ...{ late: [succeeded, 0, 0, 0], lateSumMs: lateMaxMs * succeeded, lateMaxMs },
  };
}

/** Puts answers in the place of the server's: situations that take long to come about. */
async function answers(visited: Visit, given: Readonly<Record<string, unknown>>): Promise<void> {
  for (const [path, json] of Object.entries(given))
    await visited.page.route(
      (url) => url.pathname === `/api/${path}`,
      (route) => route.fulfill({ json }),
    );
}

describe("the overview", { skip, timeout: 600_000 }, () => {
  let stage: Stage;
  before(async () => {
    const app = createEscapement({ store: "memory:", jobs: [defineJob({ name: "mail" }), nobodys] });
    stage = await serve(app);
  });
  after(async () => {
    await closeBrowser();
    await stage.close();
  });

  test("a chart draws all that ended, dashed up to the present, and sums what it draws", async () => {
    await using visited = await visit(stage.url);
    // What ended an hour ago is the server's answer still, and no longer on the chart.
    const before = ended(60 * minuteMs, 1_000);
    const points = [before, ended(5 * minuteMs, 3), ended(minuteMs, 54), { ...ended(0, 1), dead: 1 }];
    await visited.page.addInitScript(`{
      const dash = CanvasRenderingContext2D.prototype.setLineDash;
      globalThis.dashes = [];
      CanvasRenderingContext2D.prototype.setLineDash = function (segments) {
        if (segments.length > 0) dashes.push(segments);
        return dash.call(this, segments);
      };
    }`);
    await answers(visited, { overview: quiet, history: { step: "minute", lateBoundsMs, points } });
    await visited.open("", "Overview");
    const chart = visited.page.getByRole("figure").filter({ hasText: "Ended per minute" });
    await chart.getByText(/^59 in the hour to \d\d:\d\d, 54 in the last whole minute$/).waitFor();
    const names = await chart.locator(".u-series:visible .u-label").allInnerTexts();
    assert.deepEqual(names.slice(-2), ["succeeded", "dead, lost or cancelled"]);
    await until("the step that is under way is drawn", async () =>
      visited.page.evaluate<boolean>("dashes.length > 0"),
    );
    const failed = visited.page.getByRole("figure").filter({ hasText: "Failures per minute" });
    await failed.getByText(/^1 dead, 0 lost, 0 retried in the hour to/).waitFor();
    for (const name of [
      "1 Node alive",
      "0 Active",
      /^– Oldest due/,
      /^59 Ended in the last hour/,
      /^1 Dead or lost/,
    ])
      await visited.page.getByRole("link", { name }).waitFor();
    visited.assertCalm();
  });

  test("the depth of the past is drawn before that of now", async () => {
    await using visited = await visit(stage.url);
    const { page } = visited;
    const depth = (agoMs: number, dueMax: number) => ({ ...ended(agoMs, 0), dueMax });
    const points = [depth(30 * minuteMs, 1_234), depth(minuteMs, 54)];
    const none = { concurrency: null, rate: null, later: 0, blocked: 0, paused: false, isExact: true };
    const queue = { ...none, queue: "mail", due: 7, active: 2, oldestDueAt: now, oldestDueMs: 0 };
    const seen = { ...quiet, queues: [queue] };
    await answers(visited, { overview: seen, history: { step: "minute", lateBoundsMs, points } });
    await visited.open("", "Overview");
    await page.getByText("7 due, 2 active now, at most 1,234 due").waitFor();
    await page.getByText("Depth", { exact: true }).waitFor();
    visited.assertCalm();
  });

  test("no label of a chart is cut off, at either width", async () => {
    for (const width of [1280, 400]) {
      await using visited = await visit(stage.url, { width });
      const points = [ended(5 * minuteMs, 123_456, 99_000), ended(minuteMs, 54)];
      await answers(visited, { overview: quiet, history: { step: "minute", lateBoundsMs, points } });
      await visited.page.addInitScript(`{
        const draw = CanvasRenderingContext2D.prototype.fillText;
        globalThis.drawn = [];
        CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
          if (this.textAlign === "right") drawn.push({ text, left: x - this.measureText(text).width });
          return draw.call(this, text, x, y);
        };
      }`);
      await visited.open("", "Overview");
      const drawn = (): Promise<{ text: string; left: number }[]> => visited.page.evaluate("drawn");
      await until("the labels are drawn", async () => (await drawn()).some(({ text }) => / min$/.test(text)));
      assert.deepEqual(
        (await drawn()).filter(({ left }) => left < 0),
        [],
        `${width} px`,
      );
    }
  });

  test("what needs somebody is said in words, the worst first, with where to look or what to do", async () => {
    await using visited = await visit(stage.url);
    const { page } = visited;
    const seenAt = "2026-11-18T11:57:30.000Z";
    const silent = { ...node, id: "node-2", alive: false, active: 1, seenAt };
    const none = { concurrency: null, rate: null, due: 0, later: 0, active: 0, blocked: 0 };
    const idle = { ...none, paused: false, oldestDueAt: null, oldestDueMs: null, isExact: true };
    const seen = {
      ...quiet,
      nodes: [node, silent],
      counts: [
        { state: "lost", queue: "post", name: "mail", count: 1 },
        { state: "dead", queue: "post", name: "mail", count: 2 },
        { state: "waiting", queue: "post", name: "gone", count: 3 },
      ],
      queues: [
        { ...idle, queue: "post", due: 3, oldestDueMs: 2 * minuteMs },
        { ...idle, queue: "slow", due: 1, oldestDueMs: 2 * minuteMs, concurrency: 2 },
        { ...idle, queue: "typo", paused: true },
      ],
    };
    const left = {
      id: "left",
      name: "mail",
      queue: "post",
      claimer: "node-2",
      claimedAt: "2026-11-18T11:00:00.000Z",
    };
    const partition = { partition: 0, epoch: 1, firstSlot: 0, endSlot: 9, mark: null, owner: null };
    await answers(visited, {
      overview: seen,
      jobs: { jobs: [left], looked: 1, cursor: null },
      partitions: { wanted: 1, partitions: [partition] },
      counts: { counts: seen.counts },
      queues: { queues: seen.queues },
    });
    await visited.open("", "Overview");
    const region = page.getByRole("region", { name: "Needs attention" });
    for (const text of [
      "1 job is lost: whether it took effect is unknown.",
      "2 jobs are dead.",
      "No node handles gone: 3 jobs wait.",
      "The node node-2 has been silent for 3 min. It ran 1 job when last seen.",
      "1 job is active on a node that is no longer seen.",
      "1 relay partition has no owner: jobs with a route wait there.",
      "The queue post is behind: its oldest job has been due for 2 min.",
      "The queue typo is paused, and no job is in it: is the name right?",
    ])
      await region.getByText(text, { exact: true }).waitFor();
    assert.equal(
      await region.getByRole("button", { name: "Redrive…" }).count(),
      1,
      "a lost job is looked at first",
    );
    const of = (text: RegExp) => region.locator(".notice").filter({ hasText: text });
    for (const [finding, action] of [
      [/^2 jobs are dead/, "Redrive…"],
      [/^No node handles gone/, "Cancel…"],
      [/^No node handles gone/, "Copy the command: npx escapement start"],
      [/^The node node-2/, "Copy the command: npx escapement start"],
      [/^1 job is active/, "Cancel…"],
      [/^1 relay partition/, "Copy the command: npx escapement start"],
      [/^The queue post/, "Copy the command: npx escapement start --queues post"],
      [/^The queue slow/, "Limits…"],
      [/^The queue typo/, "Resume…"],
    ] as const)
      await of(finding).getByRole("button", { name: action, exact: true }).waitFor();
    const menu = page.getByRole("navigation", { name: "Screens" });
    await menu.getByRole("link", { name: "Failures 3" }).waitFor();
    await menu.getByRole("link", { name: "Queues 1 paused" }).waitFor();
    await page.getByText(/^● live · /).waitFor();
    await region.getByRole("link", { name: "Look at the oldest" }).click();
    await page.waitForURL(/jobs\/left$/);
    await page.waitForFunction("document.title === 'left · Jobs · Escapement'");
  });

  test("where no node is alive it says what starts one, and nothing of the silent", async () => {
    await using visited = await visit(stage.url);
    const { page } = visited;
    const counts = [{ state: "waiting", queue: "post", name: "mail", count: 3 }];
    await answers(visited, { overview: { ...quiet, counts, nodes: [{ ...node, alive: false }] } });
    await visited.open("", "Overview");
    const region = page.getByRole("region", { name: "Needs attention" });
    await region.getByText("No node is alive: nothing runs, and 3 jobs wait.").waitFor();
    await region.getByText("npx escapement start", { exact: true }).waitFor();
    assert.equal(await region.getByText(/silent/).count(), 0);
    visited.assertCalm();
  });

  test("jobs that nobody handles are cancelled from where it is said, after a count", async () => {
    const { id } = await stage.app.enqueue(nobodys, null);
    await using visited = await visit(stage.url);
    const { page } = visited;
    const counts = [{ state: "waiting", queue: "default", name: "nobodys", count: 1 }];
    await answers(visited, { overview: { ...quiet, counts } });
    await visited.open("", "Overview");
    await visited.act("Cancel…", "Cancel (1)");
    await page.getByRole("status").getByText("Cancel: 1 cancelled.").waitFor();
    assert.equal((await stage.app.get(id))?.state, "cancelled");
    visited.assertCalm();
  });

  test("an empty store raises no alarm", async () => {
    await using visited = await visit(stage.url);
    await answers(visited, { overview: { ...quiet, nodes: [] } });
    await visited.open("", "Overview");
    await visited.page.getByText(/^✓ Nothing/).waitFor();
    assert.equal(await visited.page.getByText("No node is alive").count(), 0);
  });
});
