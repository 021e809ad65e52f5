import type { Bed, Durability } from "./beds/bed.ts";
import { median, type Spread, spread } from "./statistics.ts";

/** What all scenarios are run with. */
export interface Plan {
  readonly bed: Bed;
  readonly durability: Durability;
  readonly runs: number;
  /** Jobs of a drain and of an enqueueMany. */
  readonly jobs: number;
  /** Concurrent single calls of enqueue. */
  readonly calls: number;
  /** Jobs of a large backlog, and of the small one that it is held against. */
  readonly backlog: number;
  readonly smallBacklog: number;
  /** Jobs of a run of the pickup scenario. */
  readonly pickups: number;
  /** Tells a person how far it is. */
  progress(line: string): void;
}

/** One measurement: the value, and whatever else explains it. */
export interface Run {
  readonly value: number;
  readonly [detail: string]: number;
}

export interface Series extends Spread {
  readonly label: string;
  readonly runs: readonly Run[];
}

/** Ours beside what it is held against, measured in turns. */
export interface Finding {
  readonly scenario: string;
  readonly what: string;
  readonly unit: string;
  readonly ours: Series;
  readonly base: Series | null;
  /** Ours divided by the base, medians both. */
  readonly ratio: number | null;
  /** The median of what each run of ours was to its neighbour: where it differs much from `ratio`, the machine was not quiet. */
  readonly neighbours: number | null;
  readonly goal: Goal | null;
  /** Null without a goal, or with too few runs to say. */
  readonly met: boolean | null;
}

/** A part of the base, or a value by itself. */
export type Goal =
  | { readonly ratio: number; readonly is: "at least" | "at most" }
  | { readonly value: number; readonly is: "at most" };

export interface Scenario {
  readonly name: string;
  run(plan: Plan): Promise<Finding[]>;
}

/** Fewer runs give figures, but no verdict. */
const minRunsForVerdict = 5;

/** Runs each in turn, first once to warm up and then `runs` times, so that what else the machine does hits all of them alike. */
export async function interleave<K extends string>(
  plan: Pick<Plan, "runs" | "progress">,
  sides: Readonly<Record<K, () => Promise<Run>>>,
): Promise<Readonly<Record<K, Run[]>>> {
  const keys = Object.keys(sides) as K[];
  const runs = Object.fromEntries(keys.map((key) => [key, [] as Run[]])) as unknown as Record<K, Run[]>;
  for (let round = 0; round <= plan.runs; round += 1) {
    for (const key of keys) {
      const run = await sides[key]();
      if (round > 0) runs[key].push(run);
      plan.progress(`${round === 0 ? "warm-up" : `run ${round}`} ${key}: ${run.value.toPrecision(4)}`);
    }
  }
  return runs;
}

export function series(label: string, runs: readonly Run[]): Series {
  return { label, ...spread(runs.map(({ value }) => value)), runs };
}

export function compare(
  facts: Pick<Finding, "scenario" | "what" | "unit" | "ours" | "base" | "goal">,
): Finding {
  const { ours, base, goal } = facts;
  if (base === null) return { ...facts, ratio: null, neighbours: null, met: isWithin(ours, goal) };
  const ratio = ours.median / base.median;
  const neighbours = median(
    ours.runs.map(({ value }, index) => value / (base.runs[index]?.value ?? Number.NaN)),
  );
  const enough = Math.min(ours.runs.length, base.runs.length) >= minRunsForVerdict;
  if (goal === null || "value" in goal || !enough) return { ...facts, ratio, neighbours, met: null };
  const met = goal.is === "at least" ? ratio >= goal.ratio : ratio <= goal.ratio;
  return { ...facts, ratio, neighbours, met };
}

function isWithin(ours: Series, goal: Goal | null): boolean | null {
  if (goal === null || !("value" in goal) || ours.runs.length < minRunsForVerdict) return null;
  return ours.median <= goal.value;
}

/** Times a piece of work: wall time, and the processor time of this process with its threads, which noise touches less. */
export async function time(work: () => Promise<void>): Promise<{ ms: number; cpuMs: number }> {
  const cpu = process.cpuUsage();
  const since = performance.now();
  await work();
  const ms = performance.now() - since;
  const { user, system } = process.cpuUsage(cpu);
  return { ms, cpuMs: (user + system) / 1_000 };
}
