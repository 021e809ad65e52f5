import { availableParallelism, cpus } from "node:os";
import type { reportData } from "../../../src/proof/report.ts";

export interface ProofRun {
  /** The command that repeats the run. */
  readonly command: string;
  readonly data: ReturnType<typeof reportData>;
}

/** The page of figures: everything on it was measured by the runs it is made from. */
export function proofPage(runs: readonly ProofRun[], command: string, day: string): string {
  const jobs = sum(runs, ({ data }) => sum(data.guarantees, (one) => one.jobs));
  const kills = sum(runs, ({ data }) => faults(data, "kill"));
  const violations = sum(runs, ({ data }) => data.violations.length);
  return `# Proof

<!-- Written by \`${command}\`; do not edit. -->

What \`escapement verify\` measured on ${day}: ${number(jobs)} jobs, ${number(kills)} processes killed, ${number(violations)} promises broken.
Real processes on real servers, on ${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? "unknown"}) that had other work to do as well, Node ${process.versions.node}; the servers ran on the same machine. What each guarantee promises is in [GUARANTEES.md](GUARANTEES.md).

${table(
  [
    "store",
    "guarantee",
    "jobs",
    "kills",
    "pauses",
    "cuts",
    "lost",
    "duplicated",
    "other promises broken",
    "run again after a fault",
    "effects doubled",
    "stale writes refused",
    "recovery p50 / p99 / max",
  ],
  runs.flatMap(({ data }) => rowsOf(data)),
)}
${findings(runs)}
- **lost**: jobs that were acknowledged, or due by a schedule, and whose final state the evidence does not support. At-most-once may give a job up after a fault, with its reason: that is its promise, and counted below.
- **duplicated**: dispatched again without a fault that explains it, or at all for at-most-once. **Run again after a fault**: what at-least-once promises; the bound is what all faults together could have cost, faults × concurrency, for the three guarantees together.
- **recovery**: from the kill or the stop of a process, or the end of any other fault, until a job that lost its claim ran again; other faults in between are included. A lease here is ${seconds(runs[0]?.data.settings.leaseMs ?? 0)}, so that much passes before others may take over at all. At-most-once is never run again.

${table(
  [
    "store",
    "time",
    "a kill every",
    "cuts",
    "restarts",
    "blocks",
    "clocks",
    "stalls",
    "given up by at-most-once",
  ],
  runs.map(({ data }) => harmOf(data)),
)}

Kills are SIGKILL, half of them at random and half at named points (after a claim, before and after the handler, before and after the finish, in the middle of a fire and of a transaction). A pause is SIGSTOP for 3 leases; a block stalls the event loop for 2 leases; a cut hits the network: latency, resets, black holes, lost replies. A restart is one of the server, half of them by SIGKILL. Clocks are off by up to 5 minutes. A stall is not injected: the machine was too busy to let a process run, or a server answer, for half a lease.

## How to repeat it

\`\`\`sh
${command}
\`\`\`

or one store at a time, each with its own page for a person (\`--report\`) and file for a program (\`--out\`):

\`\`\`sh
${runs.map((run) => run.command).join("\n")}
\`\`\`

The seed repeats the workload and the choice of faults, not the moments at which a machine runs its processes. On your own store: \`escapement verify --store URL\`.
`;
}

/** The page also has what was found: one that shows only clean runs proves nothing. */
export function findings(runs: readonly ProofRun[]): string {
  const lines = runs.flatMap(({ data }) =>
    [...Map.groupBy(data.violations, ({ kind }) => kind)].map(
      ([kind, found]) =>
        `- ${data.engine}: ${number(found.length)} × **${kind}**, for example ${found[0]?.subject}: ${found[0]?.detail}.`,
    ),
  );
  return lines.length === 0 ? "" : `\nBroken:\n\n${lines.join("\n")}\n`;
}

function rowsOf(data: ProofRun["data"]): string[][] {
  return data.guarantees.map((one) => {
    const { delivery, broken, recovery } = one;
    const spread = [recovery.p50Ms, recovery.p99Ms, recovery.maxMs].map(seconds).join(" / ");
    const named = broken.lost + broken.missed + broken.stuck + broken.duplicated;
    const others = sum(Object.values(broken), (count) => count) - named;
    const isOnce = delivery === "at-most-once";
    return [
      data.engine,
      delivery,
      number(one.jobs),
      number(faults(data, "kill")),
      number(faults(data, "pause")),
      number(faults(data, "network")),
      number(broken.lost + broken.missed + broken.stuck),
      number(broken.duplicated),
      number(others),
      isOnce ? "0" : `${number(one.reruns)} (bound ${number(data.reruns.bound)})`,
      delivery === "effectively-once" ? number(one.effectsDoubled) : "",
      number(one.staleRefused),
      recovery.count === 0 ? "" : spread,
    ];
  });
}

function harmOf(data: ProofRun["data"]): string[] {
  const kills = faults(data, "kill");
  return [
    data.engine,
    seconds(data.durationMs),
    kills === 0 ? "" : seconds(data.harmedMs / kills),
    ...["network", "restart", "block", "clock", "stall"].map((kind) => number(faults(data, kind))),
    number(sum(data.guarantees, ({ givenUp }) => givenUp)),
  ];
}

export function faults(data: ProofRun["data"], kind: string): number {
  return data.faults[kind] ?? 0;
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

export function sum<T>(values: readonly T[], of: (value: T) => number): number {
  return values.reduce((total, value) => total + of(value), 0);
}

export function number(value: number): string {
  return value.toLocaleString("en-US");
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(ms < 100_000 ? 1 : 0)} s`;
}
