import { fork } from "node:child_process";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { type SimulationOptions, type SimulationResult, simulate } from "./simulation.ts";
import type { CrashPoint } from "./weather.ts";

const usage = `usage: npm run simulate -- [--seeds N] [--from S]    many seeds
       npm run simulate -- --seed S [--trace]     one seed, with its story
       npm run simulate -- --seed S --sweep       one seed without its own faults: a crash at each await in turn`;

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "1000" },
    from: { type: "string", default: "1" },
    seed: { type: "string" },
    trace: { type: "boolean", default: false },
    sweep: { type: "boolean", default: false },
    /** From a sweep: "crash-between@17". */
    crash: { type: "string" },
    /** One of several processes: which, and of how many. */
    share: { type: "string", default: "0/1" },
  },
});

const crashFaults = ["crash-before", "crash-between", "crash-after"] as const;
/** Below this the start of another process costs more than it brings. */
const fewSeeds = 100;

/** What many runs came to. */
class Tally {
  runs = 0;
  failed = 0;
  readonly totals: Record<string, number> = {};

  add({ runs, failed, totals }: Pick<Tally, "runs" | "failed" | "totals">): void {
    this.runs += runs;
    this.failed += failed;
    for (const [what, many] of Object.entries(totals)) this.totals[what] = (this.totals[what] ?? 0) + many;
  }
}

const tally = new Tally();

async function run(seed: number, options: SimulationOptions = {}): Promise<SimulationResult> {
  const result = await simulate(seed, options);
  if (values.trace) console.log(result.trace.join("\n"));
  const { jobs, runs, faults, awaits, planned, skipped, states } = result;
  const [violation] = result.violations;
  tally.add({
    runs: 1,
    failed: violation === undefined ? 0 : 1,
    totals: { jobs, dispatches: runs, faults, awaits, planned, skipped, ...states },
  });
  if (violation !== undefined) {
    const { crashPoint } = options;
    const crash = crashPoint ? ` --crash ${crashPoint.fault}@${crashPoint.await}` : "";
    console.error(
      `seed ${seed} (${result.climate}) breaks "${violation.invariant}": ${violation.detail}\n  npm run simulate -- --seed ${seed}${crash} --trace`,
    );
  }
  return result;
}

/** Every so manieth seed, or crash point, is this process's own. */
async function runOwn(count: number, work: (index: number) => Promise<unknown>): Promise<void> {
  const [own = 0, of = 1] = values.share.split("/").map(Number);
  for (let index = own; index < count; index += of) await work(index);
}

async function sweep(seed: number): Promise<void> {
  const { awaits } = await simulate(seed, { crashPoint: { await: 0, fault: "crash-before" } });
  await runOwn(awaits * crashFaults.length, (index) => {
    const fault = crashFaults[index % crashFaults.length] ?? "crash-before";
    return run(seed, { crashPoint: { await: 1 + Math.floor(index / crashFaults.length), fault } });
  });
}

/** A seed knows nothing of any other, so that they can be shared out. */
async function shareOut(processes: number): Promise<void> {
  await Promise.all(
    Array.from({ length: processes }, async (_, index) => {
      const child = fork(import.meta.filename, [
        ...process.argv.slice(2),
        "--share",
        `${index}/${processes}`,
      ]);
      const told = new Promise<boolean>((resolve) => {
        child.once("message", (part: Tally) => {
          tally.add(part);
          resolve(true);
        });
        child.once("exit", () => resolve(false));
      });
      if (await told) return;
      tally.failed += 1;
      console.error(`process ${index} of ${processes} ended without a word`);
    }),
  );
}

function parseCrash(text: string): CrashPoint {
  const [name, place] = text.split("@");
  const fault = crashFaults.find((one) => one === name);
  return fault === undefined ? fail() : { fault, await: integer(place) };
}

function integer(text: string | undefined): number {
  const value = Number(text);
  return Number.isSafeInteger(value) && value >= 0 ? value : fail();
}

function fail(): never {
  console.error(usage);
  process.exit(2);
}

async function work(): Promise<void> {
  const many = values.sweep || (values.seed === undefined && integer(values.seeds) > fewSeeds);
  if (many && process.send === undefined && availableParallelism() > 1)
    return shareOut(availableParallelism());
  if (values.seed === undefined) {
    const from = integer(values.from);
    return runOwn(integer(values.seeds), (index) => run(from + index));
  }
  if (values.sweep) return sweep(integer(values.seed));
  await run(integer(values.seed), {
    crashPoint: values.crash === undefined ? null : parseCrash(values.crash),
  });
}

const startedAt = performance.now();
await work();
if (process.send !== undefined) process.send(tally, () => process.disconnect());
else {
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  const { runs, failed, totals } = tally;
  console.log(`${runs} runs in ${seconds} s, ${failed} failed: ${JSON.stringify(totals)}`);
}
process.exitCode = tally.failed === 0 ? 0 : 1;
