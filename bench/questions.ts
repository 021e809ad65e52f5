// npm run bench:questions -- --store postgres --jobs 1000000

import { parseArgs } from "node:util";
import { createEscapement, Operations } from "../src/index.ts";
import { beds } from "./beds/index.ts";
import { pick, readSize, UsageError } from "./options.ts";
import { fill, tag } from "./questions-fill.ts";
import { fillPast, pairs, scheduleKey } from "./questions-past.ts";
import { machine } from "./report.ts";
import { percentile } from "./statistics.ts";

const usage = `usage: npm run bench:questions -- [options]
  --store NAME     ${Object.keys(beds).join(", ")} (default sqlite)
  --jobs N         so many waiting and so many ended jobs (default 100000)
  --times N        how often each question is asked (default 50)
  --folder PATH    where files are kept meanwhile (default .escapement)`;

/** What each question may take at the 95th percentile, with a million waiting and a million ended jobs. */
const goalMs = 200;

type Question = readonly [name: string, ask: (operations: Operations) => Promise<unknown>];

const questions: readonly Question[] = [
  ["overview", (o) => o.overview()],
  ["counts by queue, name and state", (o) => o.counts(["queue", "name", "state"])],
  ["counts of one queue by state", (o) => o.counts(["state"], { queues: ["mail"] })],
  ["queues", (o) => o.queues()],
  ["failures", (o) => o.failures()],
  ["jobs", (o) => o.jobs()],
  ["jobs, oldest first", (o) => o.jobs({}, { order: "oldest" })],
  ["jobs waiting", (o) => o.jobs({ states: ["waiting"] })],
  ["jobs active (none is)", (o) => o.jobs({ states: ["active"] })],
  ["jobs blocked (none is)", (o) => o.jobs({ states: ["blocked"] })],
  ["jobs succeeded", (o) => o.jobs({ states: ["succeeded"] })],
  ["jobs dead", (o) => o.jobs({ states: ["dead"] })],
  ["jobs of a name", (o) => o.jobs({ names: ["invoice"] })],
  ["jobs of a name that is nowhere", (o) => o.jobs({ names: ["nobody"] })],
  ["jobs of a queue", (o) => o.jobs({ queues: ["mail"] })],
  ["dead jobs of a queue", (o) => o.jobs({ states: ["dead"], queues: ["mail"] })],
  ["jobs with a tag", (o) => o.jobs({ tags: [tag] })],
  ["jobs enqueued in the last hour", (o) => o.jobs({ enqueuedAfter: ago(3_600_000) })],
  ["jobs ended in the last hour", (o) => o.jobs({ endedAfter: ago(3_600_000) })],
  ["dead jobs with a piece of an error", (o) => o.jobs({ states: ["dead"], error: "cause 3" })],
  ["jobs with a piece of text", (o) => o.jobs({ text: "needle" })],
  ["jobs with a piece of text that is nowhere", (o) => o.jobs({ text: "unicorn" })],
];

const hourMs = 3_600_000;
const spans = [
  ["a day by minute", { step: "minute", since: 24 * hourMs }],
  ["30 days by hour", { step: "hour", since: 30 * 24 * hourMs }],
] as const;
const groups = [
  ["", {}],
  [", by queue", { by: "queue" }],
  [", by name", { by: "name" }],
  [", of a queue", { queue: pairs[0].queue }],
  [", of a name", { name: pairs[0].name }],
] as const;

/** The most points that one answer has: the API's bound. */
const historyQuestions: readonly Question[] = spans.flatMap(([span, { step, since }]) =>
  groups.map(
    ([group, more]): Question => [
      `history of ${span}${group}`,
      (o) => o.history({ step, since: ago(since), limit: 10_000, ...more }),
    ],
  ),
);

const otherQuestions: readonly Question[] = [
  ["occurrences of a schedule", (o) => o.occurrences(scheduleKey)],
  ["audit", (o) => o.audit()],
  ["audit of an actor", (o) => o.audit({ actors: ["ann"] })],
];

function ago(ms: number): Date {
  return new Date(Date.now() - ms);
}

async function main(): Promise<void> {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    options: {
      store: { ...text, default: "sqlite" },
      jobs: text,
      times: text,
      folder: { ...text, default: ".escapement" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return console.log(usage);
  const jobs = readSize("jobs", { default: 100_000, max: 10_000_000 }, values.jobs);
  const times = readSize("times", { default: 50, max: 10_000 }, values.times);
  const bed = await pick("--store", beds, values.store)(values.folder);
  try {
    const facts = await bed.describe("normal");
    console.log(`${bed.name} (${facts["engine"] ?? "?"}), ${jobs} waiting and ${jobs} ended, ${machine()}`);
    await using place = await bed.open("normal");
    const since = performance.now();
    const say = (line: string): void => console.error(`  ${line}`);
    await fill(place.store, jobs, say);
    await fillPast(place.store, say);
    console.log(`filled in ${Math.round((performance.now() - since) / 1_000)} s`);
    await using app = createEscapement({ store: place.store });
    const operations = new Operations(app);
    for (const question of [...questions, ...historyQuestions, ...otherQuestions])
      console.log(await ask(operations, question, times));
  } finally {
    await bed.close();
  }
}

/** A question that takes seconds is not asked fifty times. */
const patienceMs = 20_000;

async function ask(operations: Operations, [name, run]: Question, times: number): Promise<string> {
  await run(operations);
  const taken: number[] = [];
  const start = performance.now();
  while (taken.length < times && performance.now() - start < patienceMs) {
    const since = performance.now();
    await run(operations);
    taken.push(performance.now() - since);
  }
  const [p50, p95] = [percentile(taken, 0.5), percentile(taken, 0.95)];
  const figure = (ms: number): string => ms.toFixed(1).padStart(9);
  return `${name.padEnd(44)}${figure(p50)} ms p50${figure(p95)} ms p95${p95 > goalMs ? `   over ${goalMs} ms` : ""}`;
}

process.once("SIGINT", () => process.exit(130));
process.once("SIGTERM", () => process.exit(143));
try {
  await main();
} catch (error) {
  const wrongUse = error instanceof UsageError || (error instanceof TypeError && "code" in error);
  console.error(wrongUse ? `${error.message}\n\n${usage}` : error);
  process.exit(wrongUse ? 2 : 1);
}
