import { parseArgs } from "node:util";
import { simulateRelay } from "./relay-simulation.ts";
import type { CrashPoint } from "./weather.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "500" },
    from: { type: "string", default: "1" },
    seed: { type: "string" },
    trace: { type: "boolean", default: false },
    /** One seed without its own faults: a crash at each call of store and broker in turn. */
    sweep: { type: "boolean", default: false },
    crash: { type: "string" },
  },
});

const crashFaults = ["crash-before", "crash-between", "crash-after"] as const;
const totals: Record<string, number> = {};
let runs = 0;
let failed = 0;

async function run(seed: number, crashPoint: CrashPoint | null = null): Promise<number> {
  const result = await simulateRelay(seed, { crashPoint });
  runs += 1;
  if (values.trace) console.log(result.trace.join("\n"));
  for (const [what, many] of Object.entries(result.counts)) totals[what] = (totals[what] ?? 0) + many;
  const [violation] = result.violations;
  if (violation !== undefined) {
    failed += 1;
    const crash = crashPoint === null ? "" : ` --crash ${crashPoint.fault}@${crashPoint.await}`;
    console.error(
      `seed ${seed} (${result.climate}) breaks "${violation.invariant}": ${violation.detail}\n  npm run simulate:relay -- --seed ${seed}${crash} --trace`,
    );
  }
  return result.awaits;
}

const startedAt = performance.now();
if (values.seed === undefined) {
  const from = Number(values.from);
  for (let seed = from; seed < from + Number(values.seeds); seed += 1) await run(seed);
} else if (values.sweep) {
  const awaits = await run(Number(values.seed), { await: 0, fault: "crash-before" });
  for (let turn = 1; turn <= awaits; turn += 1) {
    for (const fault of crashFaults) await run(Number(values.seed), { await: turn, fault });
  }
} else {
  const [name, turn] = (values.crash ?? "").split("@");
  const fault = crashFaults.find((one) => one === name);
  await run(Number(values.seed), fault === undefined ? null : { fault, await: Number(turn) });
}
const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
console.log(`${runs} runs in ${seconds} s, ${failed} failed: ${JSON.stringify(totals)}`);
process.exitCode = failed === 0 ? 0 : 1;
