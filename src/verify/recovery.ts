import type { Attempt } from "./attempts.ts";
import type { FaultWindow, History } from "./history.ts";
import type { Violation } from "./violation.ts";

export interface Recovery {
  /** From the end of a fault until a job that it interrupted ran again; sorted. */
  readonly samplesMs: readonly number[];
  readonly boundMs: number;
  readonly violations: readonly Violation[];
}

/** How long jobs that a fault interrupted had to wait, and whether that was short enough once no more faults came. */
export function checkRecovery(
  { faults, rules }: History,
  attempts: ReadonlyMap<string, readonly Attempt[]>,
): Recovery {
  const boundMs = rules.leaseMs + rules.pollMs + 1_000;
  const disruptive = faults.filter(({ kind }) => kind !== "clock");
  const lastEndMs = Math.max(...disruptive.map(({ untilMs }) => untilMs));
  const samplesMs: number[] = [];
  const violations: Violation[] = [];
  for (const runs of attempts.values()) {
    for (const [index, run] of runs.entries()) {
      const next = runs[index + 1];
      const fault = disruptive.find((one) => interrupted(run, one));
      if (next === undefined || fault === undefined) continue;
      const waitedMs = Math.max(0, next.startAtMs - fault.untilMs);
      samplesMs.push(waitedMs);
      if (fault.untilMs < lastEndMs || waitedMs <= boundMs) continue;
      const detail = `it ran again ${Math.round(waitedMs)} ms after the last fault (${fault.kind} of ${fault.node ?? "all"}); the bound is ${boundMs} ms`;
      violations.push({ kind: "slow", delivery: null, subject: run.job, detail, atMs: next.startAtMs });
    }
  }
  return { samplesMs: samplesMs.toSorted((a, b) => a - b), boundMs, violations };
}

function interrupted(run: Attempt, { node, fromMs, untilMs }: FaultWindow): boolean {
  const endAtMs = run.endAtMs ?? Number.POSITIVE_INFINITY;
  return (
    run.how !== "threw" &&
    (node === null || node === run.node) &&
    run.startAtMs <= untilMs &&
    fromMs <= endAtMs
  );
}
