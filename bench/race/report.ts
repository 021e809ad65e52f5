import { median } from "../statistics.ts";
import type { Measurement } from "./disciplines.ts";

/** A line of the programme, and what every contestant did in it. */
export interface Heat {
  readonly name: string;
  readonly unit: "jobs/s" | "ms";
  readonly results: readonly Result[];
}

export interface Result {
  readonly contestant: string;
  readonly settings: Readonly<Record<string, string | number | boolean>>;
  /** Without the warm-up. Empty where it could not run, for the reason in `failure`. */
  readonly runs: readonly Measurement[];
  readonly failure: string | null;
}

export interface RaceReport {
  readonly store: string;
  readonly durability: string;
  readonly ground: string;
  readonly node: string;
  readonly machine: string;
  readonly at: string;
  readonly peers: Readonly<Record<string, string>>;
  readonly heats: readonly Heat[];
}

export function middle({ runs }: Result, detail = "value"): number {
  return median(runs.map((run) => run[detail] ?? Number.NaN));
}

/** Ours divided by theirs, medians both; null where one of them has no run. */
export function ratio(heat: Heat, against: string, detail = "value"): number | null {
  const [ours] = heat.results;
  const theirs = heat.results.find(({ contestant }) => contestant === against);
  if (ours === undefined || theirs === undefined) return null;
  const value = middle(ours, detail) / middle(theirs, detail);
  return Number.isNaN(value) ? null : value;
}

/** Details that are worth a column, with how they are called. */
const columns: readonly (readonly [string, string])[] = [
  ["p99", "p99 ms"],
  ["startMs", "start ms"],
  ["workerUs", "worker µs"],
  ["serverUs", "server µs"],
  ["rssMb", "RSS MB"],
];

export function format(report: RaceReport): string {
  const lines = [
    `escapement race: ${report.store}, durability ${report.durability}: ${report.ground}`,
    `Node ${report.node}, ${report.machine}; ${Object.entries(report.peers)
      .map(([name, version]) => `${name} ${version}`)
      .join(", ")}`,
  ];
  for (const heat of report.heats) lines.push("", ...formatHeat(heat));
  return lines.join("\n");
}

function formatHeat(heat: Heat): string[] {
  const present = columns.filter(([key]) => heat.results.some(({ runs }) => runs[0]?.[key] !== undefined));
  const rows = [
    [heat.name, heat.unit, "ours/theirs", ...present.map(([, title]) => title)],
    ...heat.results.map((result, place) => {
      if (result.runs.length === 0) return [result.contestant, result.failure ?? "no run"];
      const own = place === 0 ? null : ratio(heat, result.contestant);
      return [
        result.contestant,
        number(middle(result)),
        own === null ? "" : own.toFixed(2),
        ...present.map(([key]) => number(middle(result, key))),
      ];
    }),
  ];
  const widths =
    rows[0]?.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length))) ?? [];
  return rows.map((row) =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join("  "),
  );
}

function number(value: number): string {
  if (Number.isNaN(value)) return "";
  return value >= 1_000 ? Math.round(value).toLocaleString("en-US") : value.toPrecision(3);
}
