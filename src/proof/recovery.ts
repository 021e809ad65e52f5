import type { Attempt } from "./attempts.ts";
import type { FaultWindow, History } from "./history.ts";
import { deadlineAfter } from "./patience.ts";
import type { Violation } from "./violation.ts";

export interface Recovery {
  /** How long each job that a fault cost its claim waited for its next run. */
  readonly samples: readonly { readonly job: string; readonly waitedMs: number }[];
  readonly boundMs: number;
  readonly violations: readonly Violation[];
}

/**
 * How long jobs that a fault interrupted had to wait, and whether that was short enough where no other fault came between.
 *
 * @param isOther whether the next run is no matter of recovery, given from when on it was waited for.
 */
export function checkRecovery(
  { faults, rules }: History,
  attempts: ReadonlyMap<string, readonly Attempt[]>,
  isOther: (next: Attempt, fromMs: number) => boolean = () => false,
): Recovery {
  const boundMs = rules.leaseMs + rules.pollMs + 1_000;
  const disruptive = faults.filter(({ kind }) => kind !== "clock");
  const samples: { job: string; waitedMs: number }[] = [];
  const violations: Violation[] = [];
  for (const runs of attempts.values()) {
    for (const [index, run] of runs.entries()) {
      const next = runs[index + 1];
      const fault = next === undefined ? undefined : culprit(run, next, disruptive);
      if (next === undefined || fault === undefined) continue;
      const fromMs = Math.max(run.startAtMs, othersMayTakeOverAt(fault));
      if (isOther(next, fromMs)) continue;
      const waitedMs = Math.max(0, next.startAtMs - fromMs);
      samples.push({ job: run.job, waitedMs });
      if (next.startAtMs <= deadlineAfter(fromMs, boundMs, disruptive)) continue;
      const detail = `it ran again ${Math.round(waitedMs)} ms after a fault (${fault.kind} of ${fault.node ?? "all"}), and no other came between; the bound is ${boundMs} ms`;
      violations.push({ kind: "slow", delivery: null, subject: run.job, detail, atMs: next.startAtMs });
    }
  }
  return { samples, boundMs, violations };
}

/** What cost a run its claim: the death of its process if it died, else the latest that struck it before the next run. */
function culprit(run: Attempt, next: Attempt, faults: readonly FaultWindow[]): FaultWindow | undefined {
  const struck = faults.filter(
    // The drill only holds things up.
    (fault) => fault.kind !== "publish" && fault.fromMs <= next.startAtMs && interrupted(run, fault),
  );
  return struck.find(({ kind }) => kind === "kill") ?? struck.at(-1);
}

/** Others take over from a process that is gone or stopped; from one that is only cut off or blocked, there is nothing to take. */
function othersMayTakeOverAt({ kind, node, fromMs, untilMs }: FaultWindow): number {
  return node !== null && (kind === "kill" || kind === "pause") ? fromMs : untilMs;
}

/** One that failed, by its script or since its transaction was refused, stands in line again behind all that is due: no matter of leases. */
function interrupted(run: Attempt, { node, fromMs, untilMs }: FaultWindow): boolean {
  const endAtMs = run.endAtMs ?? Number.POSITIVE_INFINITY;
  return (
    run.how !== "threw" &&
    run.how !== "refused" &&
    (node === null || node === run.node) &&
    run.claimedAtMs <= untilMs &&
    fromMs <= endAtMs
  );
}
