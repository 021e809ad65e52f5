import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import type { Bed } from "../beds/bed.ts";
import { beds } from "../beds/index.ts";
import { pick, readDurability, readSize, UsageError } from "../options.ts";
import { format, machine, type Report } from "../report.ts";
import type { Finding } from "../scenario.ts";
import { fire } from "./fire.ts";
import { lateness } from "./lateness.ts";
import { pending } from "./pending.ts";
import type { Measured, RelayPlan, RelayScenario } from "./plan.ts";
import { targets } from "./targets/index.ts";

const scenarios: readonly RelayScenario[] = [fire, lateness, pending];

/** Each store and each transport at least once. */
const usualPairs: readonly (readonly [store: string, target: string])[] = [
  ["sqlite", "redis-streams"],
  ["sqlite", "http"],
  ["postgres", "kafka"],
  ["postgres", "http"],
  ["redis", "nats"],
  ["mysql", "redis-streams"],
];

const sizes = {
  runs: { default: 5, max: 1_000 },
  jobs: { default: 20_000, max: 1_000_000 },
  seconds: { default: 10, max: 3_600 },
  pending: { default: 3_000_000, max: 10_000_000 },
  "small-pending": { default: 10_000, max: 10_000_000 },
} as const;

export const relayUsage = `usage: npm run bench -- --relay [options]
  --store NAME            ${Object.keys(beds).join(", ")}; needs --to
  --to NAME               ${Object.keys(targets).join(", ")}; needs --store
                          (default ${usualPairs.map((pair) => pair.join(" to ")).join(", ")})
  --json FILE             write every single run there
  --only NAME,NAME        of ${scenarios.map(({ name }) => name).join(", ")} (pending is run once for each store)
  --durability MODE       full (default) or normal; Kafka, NATS and HTTP know no difference
  --runs N                runs of each side, after a warm-up (default 5; fewer give no verdict)
  --jobs N                due jobs of fire (default ${sizes.jobs.default})
  --seconds N             for how long jobs become due in lateness (default ${sizes.seconds.default})
  --pending N             jobs due later (default ${sizes.pending.default})
  --small-pending N       and the few that they are held against (default ${sizes["small-pending"].default})
  --folder PATH           where files are kept meanwhile (default .escapement)`;

function readOptions(args: readonly string[]) {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...(Object.fromEntries(Object.keys(sizes).map((name) => [name, text])) as Record<
        keyof typeof sizes,
        typeof text
      >),
      store: text,
      to: text,
      json: text,
      only: text,
      durability: { ...text, default: "full" },
      folder: { ...text, default: ".escapement" },
    },
  });
  return values;
}

type Options = ReturnType<typeof readOptions>;

/** Measures one pair of store and transport after the other. */
export async function relayBench(args: readonly string[]): Promise<void> {
  const options = readOptions(args);
  const chosen = chooseScenarios(options.only);
  const reports: Report[] = [];
  const seen = new Set<string>();
  for (const [store, target] of choosePairs(options)) {
    const own = chosen.filter((scenario) => scenario !== pending || !seen.has(store));
    seen.add(store);
    if (own.length === 0) continue;
    console.error(`${store} to ${target}`);
    reports.push(await measurePair(options, store, target, own));
    // After each, so that what was measured stays when a later one fails.
    if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify({ reports }, null, 2)}\n`);
    console.log(format(reports.at(-1) as Report));
  }
}

function choosePairs({ store, to }: Options): typeof usualPairs {
  if (store === undefined && to === undefined) return usualPairs;
  if (store === undefined || to === undefined) throw new UsageError("expected --store and --to together");
  return [[store, to]];
}

function chooseScenarios(only: string | undefined): readonly RelayScenario[] {
  if (only === undefined) return scenarios;
  const byName = Object.fromEntries(scenarios.map((scenario) => [scenario.name, scenario]));
  return only.split(",").map((name) => pick("--only", byName, name));
}

async function measurePair(
  options: Options,
  store: string,
  to: string,
  chosen: readonly RelayScenario[],
): Promise<Report> {
  const [openBed, openTarget] = [pick("--store", beds, store), pick("--to", targets, to)];
  const durability = readDurability(options.durability);
  const counts = {
    runs: readSize("runs", sizes.runs, options.runs),
    jobs: readSize("jobs", sizes.jobs, options.jobs),
    seconds: readSize("seconds", sizes.seconds, options.seconds),
    pending: readSize("pending", sizes.pending, options.pending),
    smallPending: readSize("small-pending", sizes["small-pending"], options["small-pending"]),
  };
  const bed: Bed = await openBed(options.folder);
  try {
    await using target = await openTarget(durability);
    const progress = (line: string): void => console.error(`  ${line}`);
    const plan: RelayPlan = { bed, target, durability, progress, ...counts };
    const facts = { ...(await bed.describe(durability)), ...(await target.describe()) };
    return {
      store: `${store} to ${to}`,
      durability,
      node: process.version,
      machine: machine(),
      at: new Date().toISOString(),
      sizes: counts,
      facts,
      findings: await measureAll(plan, chosen),
    };
  } finally {
    await bed.close();
  }
}

async function measureAll(plan: RelayPlan, chosen: readonly RelayScenario[]): Promise<Finding[]> {
  const findings: Finding[] = [];
  let measured: Measured | null = null;
  for (const scenario of chosen) {
    console.error(`${scenario.name} …`);
    const answer = await scenario.run(plan, measured);
    findings.push(...answer.findings);
    measured = answer.measured ?? measured;
  }
  return findings;
}
