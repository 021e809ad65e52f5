/**
 * What `npm start` runs: an app on an embedded SQLite file with jobs of each guarantee, a line for each event, and totals at the end.
 * Stop it with Ctrl-C, or let it stop by itself: `npm start -- --for 10s`.
 */
import { parseArgs } from "node:util";
import { parseDuration } from "../../src/duration.ts";
import { createEscapement } from "../../src/index.ts";
import { bookInvoice, importFeed, resizeImage, rollUp, sendSms, waitForReport } from "./jobs.ts";
import { printTotals, showEvents } from "./screen.ts";

const span = readSpan();
const store = "sqlite:.escapement/demo.db";
const app = createEscapement({
  store,
  jobs: [sendSms, resizeImage, bookInvoice, importFeed, waitForReport, rollUp],
});
showEvents(app);

console.log(
  `Escapement: jobs on .escapement/demo.db; ${span === null ? "stop with Ctrl-C" : `stops in ${span / 1_000} s`}\n`,
);
await app.start();

await app.enqueue(importFeed, { url: "https://example.org/old-feed" });
await app.enqueue(sendSms, { to: "Ada" }, { delay: "3s", priority: 5 });
await app.enqueue(waitForReport, { readyAt: Date.now() + 2_500 });
await app.schedule("sales", { cron: "*/3 * * * * *", overlap: "skip" }, rollUp, { of: "sales" });
let round = 0;
const feeding = setInterval(() => void feed(), 1_000);
await feed();

/** A little of everything, every second. */
async function feed(): Promise<void> {
  round += 1;
  await Promise.all([
    app.enqueue(bookInvoice, { customer: round % 3, cents: 1_000 + round * 7 }),
    app.enqueue(resizeImage, { file: `photo-${round}.jpg` }),
    app.enqueue(sendSms, { to: "Grace" }, { delay: "2s" }),
  ]);
}

let stopping = false;

async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  console.log("\nstopping: running jobs may finish …");
  clearInterval(feeding);
  await app.stop({ timeout: "10s" });
  const asking = createEscapement({ store });
  await printTotals(asking);
  await asking.stop();
  process.exit(0);
}

if (span !== null) setTimeout(() => void stop(), span);
// One Ctrl-C may arrive twice, from the terminal and from npm; only one that comes later means "now".
const interrupt = (): void => {
  const first = Date.now();
  process.on("SIGINT", () => {
    if (Date.now() - first > 1_000) process.exit(130);
  });
  void stop();
};
process.once("SIGINT", interrupt);
process.once("SIGTERM", () => void stop());

function readSpan(): number | null {
  try {
    const { values } = parseArgs({ options: { for: { type: "string" } } });
    return values.for === undefined ? null : parseDuration(values.for, "--for");
  } catch (error) {
    console.error(`${(error as Error).message}\nusage: npm start [-- --for 10s]`);
    process.exit(2);
  }
}
