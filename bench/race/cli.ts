// npm run race -- --store redis --quick --json FILE

import { fork } from "node:child_process";
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { pick, readDurability, readSize, UsageError } from "../options.ts";
import { machine } from "../report.ts";
import { readBaseline, shortfalls } from "./baseline.ts";
import type { Contestant, Ground } from "./contestant.ts";
import { contestants } from "./contestants/index.ts";
import type { Measurement, Task } from "./disciplines.ts";
import { type Grounds, grounds } from "./grounds.ts";
import { installPeers, versionOf } from "./peers.ts";
import { format, type Heat, type RaceReport, type Result } from "./report.ts";

const usage = `usage: npm run race -- [options]
  --store NAME         sqlite, postgres, mysql or redis (default sqlite)
  --durability MODE    full (default) or normal
  --only NAME,NAME     of drain-100, drain-10, drain-1, bulk, singles, pickup
  --against NAME,NAME  only these peers; none: ourselves alone
  --runs N             runs of each contestant, in turns, after a warm-up (default 3)
  --quick              one run of each, and shorter ones
  --json FILE          write every single run there
  --check              fail where a ratio is below 70 % of the lowest committed one, in three attempts`;

interface Discipline {
  readonly name: string;
  readonly discipline: Task["discipline"];
  readonly concurrency: number;
  readonly unit: Heat["unit"];
  /** Jobs of the warm-up; the other runs take about as long as `seconds`. */
  readonly jobs: number;
  readonly grows: boolean;
}

const programme: readonly Discipline[] = [
  { name: "drain-100", discipline: "drain", concurrency: 100, unit: "jobs/s", jobs: 4_000, grows: true },
  { name: "drain-10", discipline: "drain", concurrency: 10, unit: "jobs/s", jobs: 3_000, grows: true },
  { name: "drain-1", discipline: "drain", concurrency: 1, unit: "jobs/s", jobs: 2_000, grows: true },
  { name: "bulk", discipline: "bulk", concurrency: 1, unit: "jobs/s", jobs: 10_000, grows: true },
  { name: "singles", discipline: "singles", concurrency: 1, unit: "jobs/s", jobs: 10_000, grows: false },
  { name: "pickup", discipline: "pickup", concurrency: 10, unit: "ms", jobs: 100, grows: false },
];

const mostJobs = 100_000;

interface Options {
  readonly store: Ground["store"];
  readonly durability: Ground["durability"];
  readonly disciplines: readonly Discipline[];
  readonly field: readonly Contestant[];
  readonly runs: number;
  /** How long a run that grows should take. */
  readonly seconds: number;
  /** The committed figures to hold ours against; none without `--check`. */
  readonly baseline: readonly RaceReport[];
}

const checkTries = 3;

/**
 * Every contestant in turn: warm-ups, whose rate decides how many jobs the runs have, then the runs. A discipline that grows warms up twice: the
 * first one is so short that it mostly measures how code is compiled.
 */
async function race(discipline: Discipline, options: Options, place: Grounds): Promise<Heat> {
  const { field, runs, seconds } = options;
  const warmUps = discipline.grows ? 2 : 1;
  const takesPart = ({ disciplines }: Contestant): boolean =>
    disciplines === undefined || disciplines.some((one) => one === discipline.discipline);
  const results = field
    .filter(takesPart)
    .map(
      (
        contestant,
      ): { contestant: Contestant; runs: Measurement[]; jobs: number; failure: string | null } => ({
        contestant,
        runs: [],
        jobs: discipline.jobs,
        failure: null,
      }),
    );
  for (let round = 1; round <= warmUps + runs; round += 1) {
    const isWarmUp = round <= warmUps;
    for (const result of results.filter(({ failure }) => failure === null)) {
      try {
        const run = await runOnce(discipline, result.contestant, result.jobs, place);
        console.error(
          `  ${discipline.name} ${isWarmUp ? "warm-up" : `run ${round - warmUps}`} ${result.contestant.name}: ${run.value.toPrecision(4)} (${result.jobs} jobs)`,
        );
        if (!isWarmUp) result.runs.push(run);
        else if (discipline.grows)
          result.jobs = Math.min(mostJobs, Math.max(discipline.jobs, Math.round(run.value * seconds)));
      } catch (error) {
        result.failure = error instanceof Error ? error.message : String(error);
        console.error(`  ${discipline.name} ${result.contestant.name}: ${result.failure}`);
      }
    }
  }
  return {
    name: discipline.name,
    unit: discipline.unit,
    results: results.map(
      ({ contestant, runs: own, failure }): Result => ({
        contestant: contestant.name,
        settings: contestant.settings(discipline.concurrency),
        runs: failure === null ? own : [],
        failure,
      }),
    ),
  };
}

/** A process for each run: nothing is left over from the one before, neither compiled code nor memory. */
async function runOnce(
  { discipline, concurrency }: Discipline,
  contestant: Contestant,
  jobs: number,
  place: Grounds,
): Promise<Measurement> {
  const ground = await place.next();
  const task: Task = {
    contestant: contestant.name,
    discipline,
    concurrency,
    jobs,
    ground,
    race: process.pid,
  };
  const child = fork(new URL("./racer.ts", import.meta.url), [JSON.stringify(task)], {
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    execArgv: ["--disable-warning=ExperimentalWarning"],
  });
  const errors: string[] = [];
  child.stderr?.on("data", (chunk) => errors.push(String(chunk)));
  const answer = await new Promise<Measurement>((done, fail) => {
    child.once("message", (message) => done(message as Measurement));
    child.once("exit", (code) =>
      fail(new Error(`exit code ${code}: ${errors.join("").trim().split("\n").at(-1)}`)),
    );
    child.once("error", fail);
  });
  if (child.exitCode === null) {
    const kill = setTimeout(() => child.kill("SIGKILL"), 30_000);
    await new Promise((done) => child.once("exit", done));
    clearTimeout(kill);
  }
  await place.clear(ground);
  return answer;
}

function readOptions(): { options: Options; json: string | undefined } {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    options: {
      store: { ...text, default: "sqlite" },
      durability: { ...text, default: "full" },
      only: text,
      against: text,
      runs: text,
      json: text,
      quick: { type: "boolean", default: false },
      check: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    process.exit(0);
  }
  const [ourselves, ...peers] = pick("--store", contestants, values.store);
  if (ourselves === undefined) throw new UsageError("nobody races on this store");
  const wanted = values.against?.split(",");
  const names = Object.fromEntries(programme.map((discipline) => [discipline.name, discipline]));
  const durability = readDurability(values.durability);
  const options: Options = {
    store: ourselves.store,
    durability,
    disciplines: values.only?.split(",").map((name) => pick("--only", names, name)) ?? programme,
    field: [ourselves, ...peers.filter(({ name }) => wanted === undefined || wanted.includes(name))],
    runs: readSize("runs", { default: values.quick ? 1 : 3, max: 100 }, values.runs),
    seconds: values.quick ? 0.5 : 2,
    baseline: values.check ? readBaseline(ourselves.store, durability) : [],
  };
  if (values.check && options.baseline.length === 0)
    throw new UsageError(`no figures of ${ourselves.store}, durability ${durability}, are committed`);
  return { options, json: values.json };
}

/** Noise is worse than a change as often as it is better: what fell short runs again, and only what never recovers counts. */
async function recheck(heats: Heat[], options: Options, place: Grounds): Promise<void> {
  const { baseline } = options;
  for (let tries = 1; tries < checkTries; tries += 1) {
    const short = new Set(shortfalls(heats, baseline).map(({ heat }) => heat));
    for (const discipline of options.disciplines.filter(({ name }) => short.has(name))) {
      const again = await race(discipline, options, place);
      heats[heats.findIndex(({ name }) => name === discipline.name)] = again;
    }
  }
  for (const { heat, against, committed, now } of shortfalls(heats, baseline)) {
    console.error(`${heat}: ${now.toFixed(2)} times ${against}, committed are ${committed.toFixed(2)} times`);
    process.exitCode = 1;
  }
}

async function main(): Promise<void> {
  const { options, json } = readOptions();
  installPeers();
  const place = await grounds[options.store](options.durability);
  const heats: Heat[] = [];
  try {
    for (const discipline of options.disciplines) heats.push(await race(discipline, options, place));
    await recheck(heats, options, place);
  } finally {
    await place.close();
  }
  const report: RaceReport = {
    store: options.store,
    durability: options.durability,
    ground: place.description,
    node: process.version,
    machine: machine(),
    at: new Date().toISOString(),
    peers: Object.fromEntries(
      ["bullmq", "graphile-worker", "pg-boss", "plainjob", "sidequest"].map((name) => [
        name,
        versionOf(name),
      ]),
    ),
    heats,
  };
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(report, null, 2)}\n`);
  console.log(format(report));
  if (heats.some(({ results }) => results[0]?.failure !== null)) process.exitCode = 1;
}

try {
  await main();
} catch (error) {
  const wrongUse = error instanceof UsageError || (error instanceof TypeError && "code" in error);
  console.error(wrongUse ? `${error.message}\n\n${usage}` : error);
  process.exit(wrongUse ? 2 : 1);
}
