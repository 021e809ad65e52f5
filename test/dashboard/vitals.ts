/**
 * How fast the dashboard feels on a large store: `npm run vitals -- --jobs 1000000`. It fills a SQLite file, opens each screen in Chromium, and prints
 * what the browser's own performance API saw. Nothing is asserted: the figures depend on the machine.
 */
import { loadavg } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { createEscapement, defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { scratchFolder } from "../scratch.ts";
import { closeBrowser, visit } from "./browser.ts";
import { serve } from "./stage.ts";

const letter = defineJob<{ n: number }>({ name: "letter", queue: "post" });
/** Ends, one in ten of them dead in one of a few ways. */
const parcel = defineJob<{ n: number }>({
  name: "parcel",
  queue: "parcels",
  retry: { attempts: 1 },
  run: ({ input: { n } }) => {
    if (n % 10 === 0) throw new Error(`${["the depot", "the van", "the address"][n % 3]} was not found`);
  },
});
const chunk = 50_000;
const mostEnded = 50_000;

const { values } = parseArgs({ options: { jobs: { type: "string", default: "1000000" } } });
const total = Number(values.jobs);
const store = `sqlite:${join(scratchFolder("vitals"), "jobs.db")}`;
const ended = Math.min(mostEnded, Math.ceil(total / 10));
await endSome(ended);
const app = createEscapement({ store, jobs: [letter, parcel] });
for (let from = 0; from < total; from += chunk) {
  const many = Math.min(chunk, total - from);
  // Half of them due, half later, as in a store that is in use.
  await app.enqueueMany(
    letter,
    Array.from({ length: many }, (_, n) => ({ input: { n: from + n }, delay: n % 2 === 0 ? 0 : "1d" })),
  );
}
await app.schedule("nightly", { cron: "0 3 * * *" }, letter, { n: 0 });
const stage = await serve(app);

const screens = [
  ["", "Overview"],
  ["jobs", "Jobs"],
  ["jobs?name=letter&state=waiting", "Jobs"],
  ["failures", "Failures"],
  ["queues", "Queues"],
  ["schedules", "Schedules"],
  ["guarantees", "Guarantees"],
  ["nodes", "Nodes and relay"],
  ["audit", "Audit"],
] as const;

/** The largest contentful paint of this load, in ms since it began. */
const largestPaint = `new Promise((done) => new PerformanceObserver((list) => done(list.getEntries().at(-1).startTime)).observe({ type: "largest-contentful-paint", buffered: true }))`;
/** From a click in the menu until the screen has its data, in ms, as frames are painted. */
const clicked = (name: string): string => `new Promise((done) => {
  const from = performance.now();
  [...document.querySelectorAll("nav a")].find((one) => one.textContent.trim().startsWith(${JSON.stringify(name)})).click();
  const look = () => {
    const isThere = document.querySelector("h1")?.textContent === ${JSON.stringify(name)} && !document.querySelector("[aria-busy]");
    if (isThere) done(performance.now() - from); else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})`;

const script = await (await fetch(new URL("assets/app.js", stage.url))).arrayBuffer();
const packed = gzipSync(new Uint8Array(script)).length;
console.log(
  `${total.toLocaleString("en")} waiting jobs and ${ended.toLocaleString("en")} ended ones on SQLite; load average ${loadavg()[0]?.toFixed(1)}`,
);
console.log(`the script has ${(packed / 1_000).toFixed(1)} kB gzipped\n`);
console.log("screen                              first view (LCP)   click to data");
for (const [path, name] of screens) {
  await using visited = await visit(stage.url);
  await visited.open(path, name);
  const paint = Number(await visited.page.evaluate(largestPaint));
  // From a screen that asks for little: what the one before still asks for is not this one's.
  await visited.open(path === "audit" ? "schedules" : "audit", path === "audit" ? "Schedules" : "Audit");
  const click = Number(await visited.page.evaluate(clicked(name)));
  console.log(`${(path || "overview").padEnd(36)}${ms(paint).padStart(16)}${ms(click).padStart(16)}`);
}
await closeBrowser();
await stage.close();

/** Jobs that ran: failures to group, figures of the past and guarantees to account for. */
async function endSome(many: number): Promise<void> {
  const worker = createEscapement({ store, jobs: [parcel], concurrency: 100, log: silentLogger });
  await worker.enqueueMany(
    parcel,
    Array.from({ length: many }, (_, n) => ({ input: { n } })),
  );
  await worker.start();
  const left = () => worker.count({ names: ["parcel"], states: ["waiting", "active"] });
  while ((await left()) > 0) await setTimeout(200);
  await worker.stop();
}

function ms(value: number): string {
  return `${Math.round(value)} ms`;
}
