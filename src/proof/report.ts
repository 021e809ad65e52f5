import type { VerifyReport } from "../verify-report.ts";
import type { FaultWindow } from "./history.ts";
import type { RelayFigures } from "./relay/figures.ts";
import type { VerifyOptions, VerifyResult } from "./run.ts";
import { type ViolationKind, violationKinds } from "./violation.ts";

/** How many violations the screen shows; the rest is in the JSON and the page. */
const shown = 10;

/** A run for a program: everything that was found, and what repeats it. */
export function reportData(options: VerifyOptions, { verdict, history, engine, beganAtMs }: VerifyResult) {
  return {
    valid: verdict.valid,
    seed: options.seed,
    command: commandOf(options),
    engine,
    settings: history.rules,
    durationMs: Math.round(history.endedAtMs - beganAtMs),
    /** How much of that things went wrong. */
    harmedMs: options.durationMs,
    guarantees: verdict.figures.filter(({ delivery }) => options.deliveries.includes(delivery)),
    reruns: verdict.reruns,
    staleRefused: verdict.staleRefused,
    recovery: verdict.recovery,
    relay: verdict.relay,
    faults: countFaults(history.faults),
    violations: verdict.violations.map((violation) => ({
      ...violation,
      atMs: violation.atMs === null ? null : Math.round(violation.atMs - beganAtMs),
    })),
  };
}

const keptViolations = 20;

/** The same in short, to be kept and shown later. */
export function reportSummary(options: VerifyOptions, result: VerifyResult, at: Date): VerifyReport {
  const { guarantees, violations, recovery, faults, ...data } = reportData(options, result);
  const { count, p50Ms, p99Ms } = recovery;
  return {
    at: at.toISOString(),
    valid: data.valid,
    command: data.command,
    engine: data.engine,
    durationMs: data.durationMs,
    guarantees: guarantees.map(
      ({ delivery, jobs, dispatches, reruns, succeeded, givenUp, effects, broken }) => ({
        ...{ delivery, jobs, dispatches, reruns, succeeded, givenUp, effects },
        broken: Object.values(broken).reduce((sum, many) => sum + many, 0),
      }),
    ),
    faults,
    staleRefused: data.staleRefused,
    recovery: { count, p50Ms: Math.round(p50Ms), p99Ms: Math.round(p99Ms) },
    violationCount: violations.length,
    violations: violations
      .slice(0, keptViolations)
      .map(({ kind, subject, detail }) => ({ kind, subject, detail: detail.slice(0, 1_000) })),
  };
}

/** What repeats the run, without a password that the store's URL may carry. */
export function commandOf(options: VerifyOptions): string {
  const { store, to = null, deliveries, faults, nodes, jobs, durationMs, seed } = options;
  const delivery = deliveries.length === 3 ? "all" : deliveries.join(",");
  return [
    "escapement verify",
    ...(store === null ? [] : [`--store ${withoutLogin(store)}`]),
    ...(to === null ? [] : [`--to ${withoutLogin(to.url)}`]),
    `--delivery ${delivery} --faults ${faults.length === 0 ? "none" : faults.join(",")}`,
    `--nodes ${nodes} --jobs ${jobs} --duration ${durationMs / 1_000}s --seed ${seed}`,
  ].join(" ");
}

function withoutLogin(url: string): string {
  return url.replace(/\/\/[^/]*@/, "//…@");
}

export function countFaults(faults: readonly FaultWindow[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { kind } of faults) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

/** The verdict in a few lines. */
export function reportLines(options: VerifyOptions, result: VerifyResult): string[] {
  const { verdict, history, engine } = result;
  const { recovery, reruns, relay } = verdict;
  const faults = [
    ...Object.entries(countFaults(history.faults)).map(([kind, count]) => `${count} ${kind}`),
    ...(options.faults.includes("publish") && relay !== null ? [drilled(relay)] : []),
  ];
  const seconds = Math.round((history.endedAtMs - result.beganAtMs) / 1_000);
  return [
    `${verdict.valid ? "KEPT" : "BROKEN"}  ${engine}, ${options.nodes} nodes, ${seconds} s, faults: ${faults.join(", ") || "none"}, seed ${options.seed}`,
    ...verdict.figures
      .filter(({ delivery }) => options.deliveries.includes(delivery))
      .map((figures) => {
        const { jobs, dispatches, succeeded, cancelled, dead, givenUp, effects, delivery } = figures;
        const why = relay === null ? "by script" : "as refused";
        const ends = `${jobs} jobs: ${succeeded} succeeded, ${cancelled} cancelled, ${dead} dead ${why}${lost(givenUp)}`;
        const what = relay === null ? "dispatches" : "messages in the broker";
        const runs = `${dispatches} ${what}, ${figures.reruns} again after a fault`;
        const extra = delivery === "effectively-once" ? `, ${effects} effects` : "";
        return `  ${delivery.padEnd(16)}  ${problems(figures.broken)}; ${ends}; ${runs}${extra}`;
      }),
    ...(relay === null ? [] : relayLines(relay)),
    `  reruns ${reruns.count} of at most ${reruns.bound} (faults × ${relay === null ? "concurrency" : "in flight"}); stale outcomes refused: ${verdict.staleRefused}; recovery p50 ${Math.round(recovery.p50Ms)} ms, p99 ${Math.round(recovery.p99Ms)} ms, max ${Math.round(recovery.maxMs)} ms over ${recovery.count} interrupted jobs (bound after the last fault: ${recovery.boundMs} ms)`,
    ...verdict.violations
      .slice(0, shown)
      .map(({ kind, subject, detail }) => `  ${kind.toUpperCase()}  ${subject}: ${detail}`),
    ...(verdict.violations.length > shown ? [`  and ${verdict.violations.length - shown} more`] : []),
  ];
}

/** The drill leaves no windows in the history: each of its strikes is about one message, or one write. */
function drilled({ drills: { publish, dispatched_write, rollback_write } }: RelayFigures): string {
  return `a drill that made ${publish} publishes and ${dispatched_write + rollback_write} writes around them fail`;
}

function relayLines({ publishes, copies, received, rollbacks, drills, grants }: RelayFigures): string[] {
  const { refused, ambiguous, failed } = rollbacks;
  const drill = Object.entries(drills).map(([phase, count]) => `${count} ${phase}`);
  return [
    `  relay: ${publishes} published, ${copies} in the broker, ${received} received; ${refused} rolled back as refused, ${ambiguous} as ambiguous, ${failed} rollbacks could not be written; ${grants} grants of partitions; drill: ${drill.join(", ")}`,
  ];
}

/** Only at-most-once gives jobs up, and never without a reason: what was given up otherwise is a violation. */
function lost(givenUp: number): string {
  return givenUp === 0 ? "" : `, ${givenUp} recorded as lost, as promised after a fault`;
}

function problems(broken: Readonly<Record<ViolationKind, number>>): string {
  const found = violationKinds.filter((kind) => broken[kind] > 0).map((kind) => `${broken[kind]} ${kind}`);
  return found.length === 0 ? "kept" : `BROKEN: ${found.join(", ")}`;
}
