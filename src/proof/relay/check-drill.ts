import { faultOn } from "../attempts.ts";
import type { FaultWindow, History } from "../history.ts";
import { deadlineAfter } from "../patience.ts";
import type { Violation } from "../violation.ts";
import type { DrillLine, RelayEvidence } from "./evidence.ts";
import type { Publish } from "./publishes.ts";
import { drillWindows } from "./trouble.ts";

const tellWithinMs = 1_000;
/** Checkpoints that fail after one another have this much between them at the most. */
const rowMs = 2_000;

/** What the drill made fail was told under its phase; and who could not be rolled back was published once its time was up. */
export function checkDrill(
  { rules, jobs }: History,
  evidence: RelayEvidence,
  publishes: ReadonlyMap<string, readonly Publish[]>,
  faults: readonly FaultWindow[],
): Violation[] {
  const cancelled = new Set(jobs.filter(({ state }) => state === "cancelled").map(({ id }) => id));
  const late = [...faults, ...drillWindows(evidence)];
  const drills = evidence.lines.filter((line) => line.what === "drill");
  const boundMs = evidence.rules.dispatchTimeoutMs + rules.leaseMs + rules.pollMs + 1_000;
  return drills.flatMap((drill) => [
    ...checkPhase(evidence, drill, drills, faults),
    ...(drill.phase === "rollback_write"
      ? checkRepaired(drill, publishes, late, boundMs).filter(({ subject }) => !cancelled.has(subject))
      : []),
  ]);
}

/** A checkpoint that fails after one that failed, perhaps since a rollback in it could not be written, is not told again. */
function checkPhase(
  { lines, rules }: RelayEvidence,
  drill: DrillLine,
  drills: readonly DrillLine[],
  faults: readonly FaultWindow[],
): Violation[] {
  const { node, atMs, phase, jobs } = drill;
  const isNear = (other: { readonly node: string; readonly atMs: number }): boolean =>
    other.node === node &&
    other.atMs >= atMs - rules.dispatchTimeoutMs - rowMs &&
    other.atMs <= atMs + tellWithinMs;
  const told = lines.some(
    (line) =>
      line.what === "retry" &&
      line.phase === phase &&
      isNear(line) &&
      jobs.some(({ job }) => job === line.job),
  );
  const inARow = drills.some((other) => other !== drill && isNear(other));
  if (told || inARow || faultOn(faults, node, atMs - tellWithinMs, atMs + tellWithinMs) !== undefined)
    return [];
  const detail = `a checkpoint failed on ${node}, and no event reported the phase ${phase}`;
  return [{ kind: "rollback", delivery: null, subject: jobs[0]?.job ?? "?", detail, atMs }];
}

function checkRepaired(
  { jobs, atMs, done }: DrillLine,
  publishes: ReadonlyMap<string, readonly Publish[]>,
  faults: readonly FaultWindow[],
  boundMs: number,
): Violation[] {
  // It was written after all: it waits for its next attempt like any other.
  if (done) return [];
  return jobs.flatMap(({ job, token }) => {
    // Who was held up may come to its rollback after another has taken over and published.
    const next = publishes.get(job)?.find((one) => one.startAtMs > atMs || one.token > token);
    if (next !== undefined && next.startAtMs <= deadlineAfter(atMs, boundMs, faults)) return [];
    const when = next === undefined ? "never" : `${Math.round(next.startAtMs - atMs)} ms later`;
    const detail = `its rollback could not be written, and it was published again ${when}; the bound is ${boundMs} ms`;
    return [{ kind: "slow", delivery: null, subject: job, detail, atMs }];
  });
}
