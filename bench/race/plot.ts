// npm run race:plot: makes the tables and plots of docs/PERFORMANCE.md from the committed figures.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { bars } from "./bars.ts";
import { type Heat, middle, type RaceReport, ratio } from "./report.ts";

const figures = new URL("./figures/", import.meta.url);
const page = new URL("../../docs/PERFORMANCE.md", import.meta.url);
const plots = new URL("../../docs/performance/", import.meta.url);

const titles: Readonly<Record<string, string>> = {
  "drain-100": "drain, concurrency 100",
  "drain-10": "drain, concurrency 10",
  "drain-1": "drain, concurrency 1",
  bulk: "bulk add",
  singles: "10,000 single adds at once",
  pickup: "pick-up when idle",
};

function number(value: number): string {
  if (Number.isNaN(value)) return "";
  return value >= 1_000 ? Math.round(value).toLocaleString("en-US") : value.toPrecision(3);
}

function cellOf(heat: Heat, contestant: string): string {
  const result = heat.results.find((one) => one.contestant === contestant);
  if (result === undefined) return "";
  if (result.runs.length === 0) return "could not run";
  const own = ratio(heat, contestant);
  const times = contestant === heat.results[0]?.contestant || own === null ? "" : ` (${own.toFixed(2)})`;
  const p99 = middle(result, "p99");
  return `${number(middle(result))}${Number.isNaN(p99) ? "" : ` · ${number(p99)}`}${times}`;
}

function tableOf(report: RaceReport): string[] {
  const names = report.heats[0]?.results.map(({ contestant }) => contestant) ?? [];
  return [
    `| | ${names.join(" | ")} |`,
    `| --- |${" ---: |".repeat(names.length)}`,
    ...report.heats.map(
      (heat) =>
        `| ${titles[heat.name] ?? heat.name}, ${heat.unit === "ms" ? "p50 · p99 ms" : heat.unit} | ${names.map((name) => cellOf(heat, name)).join(" | ")} |`,
    ),
    ...["startMs", "workerUs", "serverUs"].flatMap((detail) => detailRow(report, names, detail)),
  ];
}

const details: Readonly<Record<string, string>> = {
  startMs: "start to first handler, ms",
  workerUs: "processor time of the worker for each job, µs",
  serverUs: "processor time of the server for each job, µs",
};

/** From the drain with concurrency 10, the default. */
function detailRow(report: RaceReport, names: readonly string[], detail: string): string[] {
  const heat = report.heats.find(({ name }) => name === "drain-10");
  if (heat === undefined) return [];
  const values = names.map((name) => {
    const result = heat.results.find(({ contestant }) => contestant === name);
    return result === undefined || result.runs.length === 0 ? "" : number(middle(result, detail));
  });
  return [`| ${details[detail]} | ${values.join(" | ")} |`];
}

function sectionOf(file: string): string {
  const report: RaceReport = JSON.parse(readFileSync(new URL(file, figures), "utf8"));
  const name = file.replace(/\.json$/, "");
  const rows = report.heats
    .filter(({ unit }) => unit === "jobs/s")
    .map((heat) => ({
      title: titles[heat.name] ?? heat.name,
      bars: heat.results.map((result) => ({ name: result.contestant, value: middle(result) })),
    }));
  writeFileSync(new URL(`${name}.svg`, plots), bars(`${report.ground}: jobs a second`, rows));
  const peers = Object.entries(report.peers).map(([peer, version]) => `${peer} ${version}`);
  return [
    `### ${report.ground}`,
    "",
    `![jobs a second](performance/${name}.svg)`,
    "",
    ...tableOf(report),
    "",
    `Node ${report.node}, ${report.machine}, ${report.at.slice(0, 10)}; ${peers.join(", ")}. In brackets: ours divided by theirs.`,
    "",
  ].join("\n");
}

mkdirSync(figures, { recursive: true });
mkdirSync(plots, { recursive: true });
const text = readFileSync(page, "utf8");
const sections = readdirSync(figures)
  .filter((file) => file.endsWith(".json") && !file.endsWith("-short.json"))
  .sort()
  .map(sectionOf);
writeFileSync(
  page,
  text.replace(
    /(<!-- figures -->\n)[\s\S]*?(<!-- \/figures -->)/,
    (_, open: string, close: string) => `${open}\n${sections.join("\n")}\n${close}`,
  ),
);
console.log(
  sections.length > 0
    ? `${sections.length} reports are in docs/PERFORMANCE.md.`
    : "no figures yet: npm run race -- --store sqlite --json bench/race/figures/sqlite-full.json",
);
