import { parseArgs } from "node:util";
import { simulate } from "./simulation.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "1000" },
    from: { type: "string", default: "1" },
    seed: { type: "string" },
    trace: { type: "boolean", default: false },
  },
});

const first = Number(values.seed ?? values.from);
const count = values.seed === undefined ? Number(values.seeds) : 1;
if (!Number.isSafeInteger(first) || !Number.isSafeInteger(count) || count < 1) {
  console.error("usage: npm run simulate -- [--seeds N] [--from S] | --seed S [--trace]");
  process.exit(2);
}

const startedAt = performance.now();
const totals: Record<string, number> = {};
let failed = 0;
for (let seed = first; seed < first + count; seed += 1) {
  const result = await simulate(seed);
  if (values.trace) console.log(result.trace.join("\n"));
  for (const [what, many] of Object.entries({
    jobs: result.jobs,
    runs: result.runs,
    faults: result.faults,
    ...result.states,
  })) {
    totals[what] = (totals[what] ?? 0) + many;
  }
  const [violation] = result.violations;
  if (violation === undefined) continue;
  failed += 1;
  console.error(
    `seed ${seed} (${result.climate}) breaks "${violation.invariant}": ${violation.detail}\n  npm run simulate -- --seed ${seed} --trace`,
  );
}
const seconds = (performance.now() - startedAt) / 1_000;
console.log(`${count} seeds in ${seconds.toFixed(1)} s, ${failed} failed; ${JSON.stringify(totals)}`);
process.exitCode = failed === 0 ? 0 : 1;
