import { availableParallelism } from "node:os";
import type { TakeoverReport } from "./takeover.ts";

/** What a takeover measured, for a person. */
export function takeoverSection(name: string, report: TakeoverReport, command: string, day: string): string {
  const { tasks, duplicates, inFlightBound, tail, takeoverMs, leaseMs, perSecond, effects } = report;
  const rows = [
    ["tasks, all due in one window of five minutes", number(tasks)],
    ["delivered when the relay was killed", number(report.deliveredAtKill)],
    ["**lost**", number(report.lost)],
    ["delivered again (bound: what may be in flight)", `${number(duplicates)} (${number(inFlightBound)})`],
    ["leases of partitions lost by living relays", number(report.partitionsLost)],
    ["how far before the kill the oldest of these had come first", `${number(tail)} deliveries`],
    ["from the death to the first new fire", `${seconds(takeoverMs)} (lease ${seconds(leaseMs)})`],
    ["fired", `${number(perSecond)} a second, ${seconds(report.drainMs)} in all`],
    ...(effects === null || report.tasksWithEffect === null
      ? []
      : [
          [
            "effects through the inbox / tasks with one",
            `${number(effects)} / ${number(report.tasksWithEffect)}`,
          ],
        ]),
  ];
  return `## ${name}

A relay process is killed with SIGKILL in the middle of a burst, another takes over, and a consumer counts what arrived. Measured on ${day}; relay, store, broker and consumer shared ${availableParallelism()} cores.

| | |
| --- | --- |
${rows.map((cells) => `| ${cells.join(" | ")} |`).join("\n")}

\`\`\`sh
${command}
\`\`\``;
}

function number(value: number): string {
  return value.toLocaleString("en-US");
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
