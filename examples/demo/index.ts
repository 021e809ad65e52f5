/**
 * What `npm start` runs: an app on a SQLite file with jobs of each guarantee, and the dashboard on it. Stop it with Ctrl-C.
 *
 *   npm start -- --no-dashboard    prints a line for each event instead
 *   npm start -- --db demo.db      keeps the jobs in this file; without it they go with the demo
 *   npm start -- --for 10s         stops by itself
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { parseDuration } from "../../src/duration.ts";
import { createEscapement } from "../../src/index.ts";
import { feed, furnish } from "./feed.ts";
import { jobs } from "./jobs.ts";
import { startPartner } from "./partner.ts";
import { printTotals, showEvents } from "./screen.ts";
import { planTheDay, simulated, simulateYesterday } from "./yesterday.ts";

const { runForMs, withDashboard, db } = readOptions();
const temporary = db === null ? mkdtempSync(join(tmpdir(), "escapement-demo-")) : null;
const file = db ?? join(temporary ?? "", "demo.db");
const isNew = !existsSync(file);
const store = `sqlite:${file}`;
const partner = withDashboard ? await startPartner() : null;
const app = createEscapement({ store, jobs: [...jobs, ...(partner?.jobs ?? [])] });
const closing: (() => void)[] = [];
let isStopping = false;

// One Ctrl-C may arrive twice, from the terminal and from npm; only one that comes later means "now".
process.once("SIGINT", () => {
  const first = Date.now();
  process.on("SIGINT", () => {
    if (Date.now() - first > 1_000) end(130);
  });
  void stop();
});
process.once("SIGTERM", () => void stop());
if (runForMs !== null) setTimeout(() => void stop(), runForMs);

const place = `${file}${temporary === null ? "" : ", which is removed at the end"}`;
const howToStop = runForMs === null ? "stop with Ctrl-C" : `stops in ${runForMs / 1_000} s`;
await (withDashboard ? runWithDashboard() : runWithEvents()).catch((error) => {
  // Whatever was under way when it was told to stop finds the app stopped.
  if (!isStopping) throw error;
});

async function runWithDashboard(): Promise<void> {
  const { serveDashboard } = await import("./dashboard.ts");
  const dashboard = await serveDashboard(app);
  closing.push(dashboard.close);
  console.log(`Escapement: the dashboard is at ${dashboard.url}; ${howToStop}`);
  console.log(`The jobs are in ${place}.`);
  if (isNew) {
    await simulateYesterday(file);
    console.log(`A day of history was simulated; its jobs have the tag "${simulated}".`);
  }
  await planTheDay(app);
  await app.start();
  if (partner !== null) closing.push(partner.feed(app));
  closing.push(await furnish(app));
  closing.push(await feed(app));
}

async function runWithEvents(): Promise<void> {
  console.log(`Escapement: jobs in ${place}; ${howToStop}\n`);
  showEvents(app);
  await app.start();
  closing.push(await feed(app));
}

async function stop(): Promise<void> {
  if (isStopping) return;
  isStopping = true;
  console.log("\nstopping: running jobs may finish …");
  for (const close of closing) close();
  await app.stop({ timeout: "10s" });
  partner?.close();
  const asking = createEscapement({ store });
  await printTotals(asking);
  await asking.stop();
  end(0);
}
function end(code: number): never {
  if (temporary !== null) rmSync(temporary, { recursive: true, force: true });
  process.exit(code);
}

function readOptions() {
  try {
    const options = {
      for: { type: "string" },
      db: { type: "string" },
      "no-dashboard": { type: "boolean" },
    } as const;
    const { values } = parseArgs({ options });
    return {
      runForMs: values.for === undefined ? null : parseDuration(values.for, "--for"),
      withDashboard: values["no-dashboard"] !== true,
      db: values.db ?? null,
    };
  } catch (error) {
    console.error(
      `${(error as Error).message}\nusage: npm start [-- [--no-dashboard] [--db FILE] [--for 10s]]`,
    );
    process.exit(2);
  }
}
