import { parseArgs } from "node:util";
import { type SimulationOptions, type SimulationResult, simulate } from "./simulation.ts";
import type { CrashPoint } from "./weather.ts";

const usage = `usage: npm run simulate -- [--seeds N] [--from S]    many seeds
       npm run simulate -- --seed S [--trace]     one seed, with its story
       npm run simulate -- --seed S --sweep       one seed without its own faults: a crash at each call in turn`;

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "1000" },
    from: { type: "string", default: "1" },
    seed: { type: "string" },
    trace: { type: "boolean", default: false },
    sweep: { type: "boolean", default: false },
    /** From a sweep: "crash-between@17". */
    crash: { type: "string" },
  },
});

const crashFaults = ["crash-before", "crash-between", "crash-after"] as const;
const totals: Record<string, number> = {};
let runs = 0;
let failed = 0;

async function run(seed: number, options: SimulationOptions = {}): Promise<SimulationResult> {
  const result = await simulate(seed, options);
  runs += 1;
  if (values.trace) console.log(result.trace.join("\n"));
  const { jobs, faults, calls, states } = result;
  for (const [what, many] of Object.entries({ jobs, runs: result.runs, faults, calls, ...states })) {
    totals[what] = (totals[what] ?? 0) + many;
  }
  const [violation] = result.violations;
  if (violation !== undefined) {
    failed += 1;
    const { crashPoint } = options;
    const crash = crashPoint ? ` --crash ${crashPoint.fault}@${crashPoint.call}` : "";
    console.error(
      `seed ${seed} (${result.climate}) breaks "${violation.invariant}": ${violation.detail}\n  npm run simulate -- --seed ${seed}${crash} --trace`,
    );
  }
  return result;
}

async function sweep(seed: number): Promise<void> {
  const { calls } = await run(seed, { crashPoint: { call: 0, fault: "crash-before" } });
  for (let call = 1; call <= calls; call += 1) {
    for (const fault of crashFaults) await run(seed, { crashPoint: { call, fault } });
  }
}

function parseCrash(text: string): CrashPoint {
  const [name, call] = text.split("@");
  const fault = crashFaults.find((one) => one === name);
  return fault === undefined ? fail() : { fault, call: integer(call) };
}

function integer(text: string | undefined): number {
  const value = Number(text);
  return Number.isSafeInteger(value) && value >= 0 ? value : fail();
}

function fail(): never {
  console.error(usage);
  process.exit(2);
}

const startedAt = performance.now();
if (values.seed === undefined) {
  const from = integer(values.from);
  const seeds = integer(values.seeds);
  for (let seed = from; seed < from + seeds; seed += 1) await run(seed);
} else if (values.sweep) {
  await sweep(integer(values.seed));
} else {
  const crashPoint = values.crash === undefined ? null : parseCrash(values.crash);
  await run(integer(values.seed), { crashPoint });
}
const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
console.log(`${runs} runs in ${seconds} s, ${failed} failed: ${JSON.stringify(totals)}`);
process.exitCode = failed === 0 ? 0 : 1;
