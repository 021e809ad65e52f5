import { cpus } from "node:os";
import type { Finding, Series } from "./scenario.ts";
import { median } from "./statistics.ts";

/** Everything that a bench found out, for a file. */
export interface Report {
  readonly store: string;
  readonly durability: string;
  readonly node: string;
  readonly machine: string;
  readonly at: string;
  readonly sizes: Readonly<Record<string, number>>;
  readonly facts: Readonly<Record<string, string>>;
  readonly findings: readonly Finding[];
}

export function machine(): string {
  const processors = cpus();
  return `${processors.length} x ${processors[0]?.model ?? "unknown"}, ${process.platform} ${process.arch}`;
}

/** The report for a person: what was measured, then a paragraph for each finding. */
export function format(report: Report): string {
  const { store, durability, node, findings } = report;
  const sizes = Object.entries(report.sizes).map(([name, size]) => `${name} ${size}`);
  const facts = Object.entries(report.facts).map(([name, value]) => `${name}: ${value}`);
  return [
    `escapement bench: ${store}, durability ${durability}, Node ${node}, ${report.machine}`,
    `sizes: ${sizes.join(", ")}`,
    ...facts,
    "",
    ...findings.map((finding) => `${formatFinding(finding)}\n`),
  ].join("\n");
}

function formatFinding(finding: Finding): string {
  const { scenario, what, unit, ours, base, ratio } = finding;
  const width = Math.max(ours.label.length, base?.label.length ?? 0);
  const line = (series: Series): string => `  ${series.label.padEnd(width)}  ${formatSeries(series, unit)}`;
  return [
    `${scenario}: ${what}`,
    line(ours),
    ...(base === null ? [] : [line(base)]),
    ...(ratio === null
      ? finding.goal === null
        ? []
        : [`  ${formatGoal(finding).replace(/^, /, "")}`]
      : [`  ratio ${ratio.toFixed(2)}${formatGoal(finding)}; ${formatNeighbours(finding)}`]),
  ].join("\n");
}

function formatSeries(series: Series, unit: string): string {
  const { min, max, runs } = series;
  const details = Object.keys(runs[0] ?? {})
    .filter((key) => key !== "value")
    .map((key) => `${key} ${number(median(runs.map((run) => run[key] ?? Number.NaN)))}`);
  return `${number(series.median)} ${unit} (${number(min)} to ${number(max)}; ${runs.length} runs)  ${details.join(", ")}`;
}

function formatNeighbours({ neighbours }: Finding): string {
  return `median of neighbouring runs ${neighbours?.toFixed(2) ?? "unknown"}`;
}

function formatGoal({ goal, met }: Finding): string {
  if (goal === null) return "";
  const verdict = met === null ? "too few runs to say" : met ? "met" : "NOT MET";
  return `, goal ${goal.is} ${"value" in goal ? goal.value : goal.ratio}: ${verdict}`;
}

function number(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString("en-US") : value.toPrecision(3);
}
