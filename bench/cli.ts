// npm run bench -- --store sqlite --json FILE
// npm run bench -- --relay --store sqlite --to redis-streams --json FILE

import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { AuditFailure } from "./audit.ts";
import { beds } from "./beds/index.ts";
import { claimCost } from "./claim-cost.ts";
import { drain } from "./drain.ts";
import { enqueueConcurrent, enqueueMany } from "./enqueue.ts";
import { jobKinds } from "./kinds.ts";
import { pick, readDurability, readSize, UsageError } from "./options.ts";
import { pickup } from "./pickup.ts";
import { relayBench, relayUsage } from "./relay/command.ts";
import { format, machine, type Report } from "./report.ts";
import type { Finding, Plan, Scenario } from "./scenario.ts";

const scenarios: readonly Scenario[] = [drain, enqueueConcurrent, enqueueMany, claimCost, pickup, jobKinds];

const usage = `usage: npm run bench -- [options]
  --store NAME            ${Object.keys(beds).join(", ")} (default sqlite)
  --json FILE             write every single run there
  --only NAME,NAME        of ${scenarios.map(({ name }) => name).join(", ")}
  --durability MODE       full (default) or normal
  --runs N                runs of each side, after a warm-up (default 5; fewer give no verdict)
  --jobs N                jobs of drain and enqueue-many (default 20000)
  --calls N               calls of enqueue-concurrent (default 10000)
  --backlog N             jobs of a large backlog (default 1000000)
  --small-backlog N       jobs of a small one (default 10000)
  --pickups N             jobs of a run of pickup (default 100)
  --folder PATH           where files are kept meanwhile (default .escapement)

${relayUsage}`;

const sizes = {
  runs: { default: 5, max: 1_000 },
  jobs: { default: 20_000, max: 1_000_000 },
  calls: { default: 10_000, max: 1_000_000 },
  backlog: { default: 1_000_000, max: 10_000_000 },
  "small-backlog": { default: 10_000, max: 10_000_000 },
  pickups: { default: 100, max: 10_000 },
} as const;

type Size = keyof typeof sizes;

function readOptions() {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    options: {
      ...(Object.fromEntries(Object.keys(sizes).map((name) => [name, text])) as Record<Size, typeof text>),
      store: { ...text, default: "sqlite" },
      json: text,
      only: text,
      durability: { ...text, default: "full" },
      folder: { ...text, default: ".escapement" },
      help: { type: "boolean", default: false },
      relay: { type: "boolean", default: false },
    },
  });
  return values;
}

function chooseScenarios(only: string | undefined): readonly Scenario[] {
  if (only === undefined) return scenarios;
  return only.split(",").map((name) => {
    const found = scenarios.find((scenario) => scenario.name === name);
    if (found === undefined) throw new UsageError(`expected --only to name scenarios, got ${name}`);
    return found;
  });
}

async function makePlan(options: ReturnType<typeof readOptions>): Promise<Plan> {
  const open = pick("--store", beds, options.store);
  const sizeOf = (name: Size, given: string | undefined): number => readSize(name, sizes[name], given);
  return {
    durability: readDurability(options.durability),
    runs: sizeOf("runs", options.runs),
    jobs: sizeOf("jobs", options.jobs),
    calls: sizeOf("calls", options.calls),
    backlog: sizeOf("backlog", options.backlog),
    smallBacklog: sizeOf("small-backlog", options["small-backlog"]),
    pickups: sizeOf("pickups", options.pickups),
    progress: (line) => console.error(`  ${line}`),
    bed: await open(options.folder),
  };
}

async function measure(plan: Plan, chosen: readonly Scenario[]): Promise<Report> {
  const { bed, durability, progress, ...counts } = plan;
  const facts = await bed.describe(durability);
  const findings: Finding[] = [];
  for (const scenario of chosen) {
    console.error(`${scenario.name} …`);
    findings.push(...(await scenario.run(plan)));
  }
  return {
    store: bed.name,
    durability,
    node: process.version,
    machine: machine(),
    at: new Date().toISOString(),
    sizes: counts,
    facts,
    findings,
  };
}

async function main(): Promise<void> {
  const relayArguments = process.argv.slice(2).filter((argument) => argument !== "--relay");
  if (relayArguments.length < process.argv.length - 2 && !relayArguments.includes("--help"))
    return relayBench(relayArguments);
  const options = readOptions();
  if (options.help) return console.log(usage);
  const chosen = chooseScenarios(options.only);
  const plan = await makePlan(options);
  try {
    const report = await measure(plan, chosen);
    if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
    console.log(format(report));
  } finally {
    await plan.bed.close();
  }
}

process.once("SIGINT", () => process.exit(130));
process.once("SIGTERM", () => process.exit(143));
try {
  await main();
} catch (error) {
  const wrongUse = error instanceof UsageError || (error instanceof TypeError && "code" in error);
  if (wrongUse) console.error(`${error.message}\n\n${usage}`);
  else console.error(error instanceof AuditFailure ? `AUDIT FAILED: ${error.message}` : error);
  process.exit(wrongUse ? 2 : 1);
}
