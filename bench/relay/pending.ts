import { compare, type Finding, type Run, series, time } from "../scenario.ts";
import type { RelayPlan, RelayScenario } from "./plan.ts";
import { RelayScene } from "./scene.ts";
import { openNowhere } from "./targets/nowhere.ts";

const goal = { ratio: 1.3, is: "at most" } as const;

/**
 * What it costs to fire a job beside many that are due later, against beside few. The messages go nowhere and the disk is not
 * waited for: a broker and a sync take as long whatever is pending, and would hide what is asked for.
 */
export const pending: RelayScenario = {
  name: "pending",
  async run(plan) {
    await using small = await openScene(plan, plan.smallPending);
    await using large = await openScene(plan, plan.pending);
    const runs: { readonly small: Cost; readonly large: Cost }[] = [];
    for (let round = 0; round <= plan.runs; round += 1) {
      const run = { small: await fireBeside(small, plan.jobs), large: await fireBeside(large, plan.jobs) };
      if (round > 0) runs.push(run);
      plan.progress(
        `${round === 0 ? "warm-up" : `run ${round}`}: ${run.small.wallUs.toPrecision(4)} small, ${run.large.wallUs.toPrecision(4)} large`,
      );
    }
    const finding = (what: string, of: (cost: Cost) => Run): Finding =>
      compare({
        scenario: "pending",
        what: `${what} to fire one of ${plan.jobs} due jobs beside ${plan.pending} that are due later (always with durability normal, to nowhere)`,
        unit: "us",
        ours: series(
          `${plan.pending} pending`,
          runs.map((run) => of(run.large)),
        ),
        base: series(
          `${plan.smallPending} pending`,
          runs.map((run) => of(run.small)),
        ),
        goal,
      });
    const findings = [
      finding("wall time", ({ wallUs, ...details }) => ({ value: wallUs, ...details })),
      finding("processor time of this process", ({ cpuUs, ...details }) => ({ value: cpuUs, ...details })),
    ];
    return { findings, measured: null };
  },
};

interface Cost {
  readonly wallUs: number;
  readonly cpuUs: number;
  readonly checkpoints: number;
  readonly reads: number;
}

async function openScene(plan: RelayPlan, size: number): Promise<RelayScene> {
  const since = performance.now();
  const scene = await RelayScene.open({ ...plan, durability: "normal" }, openNowhere());
  await scene.addPending(size);
  plan.progress(`${size} jobs due later: built in ${Math.round(performance.now() - since)} ms`);
  await scene.start();
  return scene;
}

async function fireBeside(scene: RelayScene, jobs: number): Promise<Cost> {
  await scene.preload(jobs);
  const before = scene.counts;
  const { ms, cpuMs } = await time(() => scene.release());
  const after = scene.counts;
  await scene.audit();
  return {
    wallUs: (ms / jobs) * 1_000,
    cpuUs: (cpuMs / jobs) * 1_000,
    checkpoints: after.checkpoints - before.checkpoints,
    reads: after.reads - before.reads,
  };
}
