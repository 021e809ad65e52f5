import { setTimeout as delay } from "node:timers/promises";
import { AuditFailure } from "../audit.ts";
import { compare, type Run, series } from "../scenario.ts";
import { percentile } from "../statistics.ts";
import { measureOnce } from "./fire.ts";
import type { Measured, RelayPlan, RelayScenario } from "./plan.ts";
import { RelayScene } from "./scene.ts";

/** Of what the relay can fire. */
const load = 0.5;
/** Between the last enqueue and the first that is due; what comes in must be in by then. */
const restMs = 2_000;
const goal = { value: 100, is: "at most" } as const;

/**
 * How late jobs are at half of the sustained rate: from a job's time to the acknowledgement of its publish, both on the clock of
 * this machine, on which the store and the broker run too.
 */
export const lateness: RelayScenario = {
  name: "lateness",
  async run(plan, before) {
    const measured = before ?? (await measureOnce(plan));
    const runs: Run[] = [];
    for (let round = 1; round <= plan.runs; round += 1) {
      const run = await measure(plan, measured);
      runs.push(run);
      plan.progress(`run ${round}: p99 ${run.value.toPrecision(4)} ms`);
    }
    const finding = compare({
      scenario: "lateness",
      what: `p99 from a job's time to its acknowledgement, jobs due evenly at half of ${Math.round(measured.sustained)} a second for ${plan.seconds} s`,
      unit: "ms",
      ours: series("ours", runs),
      base: null,
      goal,
    });
    return { findings: [finding], measured };
  },
};

async function measure(plan: RelayPlan, { sustained, enqueued }: Measured): Promise<Run> {
  await using scene = await RelayScene.open(plan, await plan.target.open());
  await scene.start();
  const perSecond = sustained * load;
  const count = Math.round(perSecond * plan.seconds);
  const startAtMs = Date.now() + 1.5 * (count / enqueued) * 1_000 + restMs;
  const late: number[] = [];
  const lateWhenSent: number[] = [];
  scene.app.on("published", ({ job, lateMs }) => {
    late.push(Date.now() - job.runAt.getTime());
    lateWhenSent.push(lateMs);
  });
  await scene.enqueue("task", count, (n) => new Date(startAtMs + (n / perSecond) * 1_000));
  const earlyMs = startAtMs - Date.now();
  if (earlyMs < 0) throw new AuditFailure(`enqueueing ended ${-earlyMs} ms after the first job was due`);
  await delay(earlyMs);
  const cpu = process.cpuUsage();
  await scene.settled();
  const { user, system } = process.cpuUsage(cpu);
  await scene.audit();
  return {
    value: percentile(late, 0.99),
    p50: percentile(late, 0.5),
    max: percentile(late, 1),
    p99WhenSent: percentile(lateWhenSent, 0.99),
    perSecond,
    cpuUsPerJob: (user + system) / count,
  };
}
