import type { Figures } from "./checker.ts";
import type { RelayFigures } from "./relay/figures.ts";
import { commandOf, countFaults } from "./report.ts";
import type { VerifyOptions, VerifyResult } from "./run.ts";
import { escapeText, timelineSvg } from "./timeline.ts";
import { violationKinds } from "./violation.ts";

/** How many violations the page lists; the JSON has all. */
const listed = 200;

const style = `
:root { color-scheme: light dark; --ink: #1c2430; --dim: #68758a; --line: #dde3ec; --paper: #fff; --runs: #7aa2d6; --good: #1a7f4b; --bad: #c4302b }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf3; --dim: #97a3b6; --line: #2c3646; --paper: #141a24; --runs: #4f7db5; --good: #4cc38a; --bad: #ff6b63 } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1240px; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.7rem; margin: 0 } h1.kept { color: var(--good) } h1.broken { color: var(--bad) }
p { color: var(--dim); margin: .3rem 0 1.2rem } code { font-size: .9em; overflow-wrap: anywhere }
table { border-collapse: collapse; margin: 1.2rem 0; width: 100% } th, td { text-align: right; padding: .35rem .6rem; border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums }
th:first-child, td:first-child, .list td, .list th { text-align: left } td:first-child { white-space: nowrap } h2 { font-size: 1.1rem; margin: 1.6rem 0 0 } th { color: var(--dim); font-weight: 500; vertical-align: bottom; font-size: .85em } td.bad { color: var(--bad); font-weight: 700 }
svg { width: 100%; height: auto } svg text { font: 13px system-ui, sans-serif; fill: var(--dim) } .tick { text-anchor: middle } .rule { stroke: var(--line); fill: none }
.runs { fill: var(--runs) } .fault { fill-opacity: .45 } .kill { fill: #d33 } .pause { fill: #e8a200 } .block { fill: #9b59d0 } .network { fill: #14a3a3 } .clock { fill: #5b8c2a } .restart { fill: #a05a2c } .broker { fill: #2f6fde } .both { fill: #0b6b6b } .broker-restart { fill: #7a4a8c } .stall { fill: #999 } .violation { fill: var(--bad) }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; padding: 0; color: var(--dim) } .legend svg { width: 14px; height: 14px; vertical-align: -2px }
`;

/** The run as one page that needs nothing else: what was promised, what was done to it, what came of it. */
export function reportPage(options: VerifyOptions, result: VerifyResult): string {
  const { verdict, history, engine } = result;
  const word = verdict.valid ? "kept" : "broken";
  const { recovery, reruns } = verdict;
  const figures = verdict.figures.filter(({ delivery }) => options.deliveries.includes(delivery));
  const title = verdict.valid
    ? "Every guarantee was kept"
    : `A guarantee is broken: ${verdict.violations.length} violations`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>escapement verify: ${word}</title><style>${style}</style></head><body>
<h1 class="${word}">${title}</h1>
<p>${escapeText(engine)}, ${options.nodes} nodes × ${options.concurrency} handlers, lease ${options.leaseMs} ms. Reruns ${reruns.count} of at most ${reruns.bound}; stale outcomes refused ${verdict.staleRefused}; recovery p50 ${Math.round(recovery.p50Ms)} ms, p99 ${Math.round(recovery.p99Ms)} ms, max ${Math.round(recovery.maxMs)} ms.<br><code>${escapeText(commandOf(options))}</code></p>
${timelineSvg(result)}
${legend(countFaults(history.faults), history.relay === null ? "handlers started" : "published, or handled")}
${guarantees(figures)}
${relayed(verdict.relay)}
${promises(figures)}
${violations(result)}
</body></html>
`;
}

function legend(counts: Readonly<Record<string, number>>, bars: string): string {
  const items = [
    ["runs", bars],
    ...Object.entries(counts).map(([kind, count]) => [`fault ${kind}`, `${count} × ${kind}`]),
  ];
  const swatch = (name: string): string =>
    `<svg viewBox="0 0 14 14"><rect class="${name}" width="14" height="14"/></svg>`;
  return `<ul class="legend">${items.map(([name = "", text = ""]) => `<li>${swatch(name)} ${text}</li>`).join("")}</ul>`;
}

/** One row for each guarantee. */
function table(
  figures: readonly Figures[],
  columns: readonly (readonly [string, (figures: Figures) => number | string, boolean?])[],
): string {
  const head = ["guarantee", ...columns.map(([name]) => name)].map((name) => `<th>${name}</th>`);
  const rows = figures.map((one) => {
    const cells = columns.map(([, value, isBad = false]) => {
      const shown = value(one);
      return `<td${isBad && shown !== 0 ? ' class="bad"' : ""}>${shown.toLocaleString("en-US")}</td>`;
    });
    return `<tr><td>${one.delivery}</td>${cells.join("")}</tr>`;
  });
  return `<table><tr>${head.join("")}</tr>${rows.join("")}</table>`;
}

function guarantees(figures: readonly Figures[]): string {
  const wait = ({ recovery }: Figures): string =>
    recovery.count === 0 ? "" : `${Math.round(recovery.p50Ms)} / ${Math.round(recovery.maxMs)} ms`;
  return table(figures, [
    ["jobs", ({ jobs }) => jobs],
    ["dispatches", ({ dispatches }) => dispatches],
    ["again after a fault", ({ reruns }) => reruns],
    ["succeeded", ({ succeeded }) => succeeded],
    ["cancelled", ({ cancelled }) => cancelled],
    ["dead by script, or refused", ({ dead }) => dead],
    ["given up, with a reason", ({ givenUp }) => givenUp],
    ["effects", ({ effects, delivery }) => (delivery === "effectively-once" ? effects : "")],
    ["stale refused", ({ staleRefused }) => staleRefused],
    ["recovery p50 / max", wait],
  ]);
}

function relayed(figures: RelayFigures | null): string {
  if (figures === null) return "";
  const { publishes, copies, received, rollbacks, drills, grants } = figures;
  const cells = [
    ["published", publishes],
    ["in the broker", copies],
    ["received", received],
    ["rolled back: refused", rollbacks.refused],
    ["rolled back: ambiguous", rollbacks.ambiguous],
    ["rollbacks that could not be written", rollbacks.failed],
    ["partitions granted", grants],
    ...Object.entries(drills).map(([phase, count]) => [`drill: ${phase}`, count] as const),
  ] as const;
  const row = (tag: string, values: readonly (string | number)[]): string =>
    `<tr>${values.map((value) => `<${tag}>${value.toLocaleString("en-US")}</${tag}>`).join("")}</tr>`;
  const [head, body] = [cells.map(([name]) => name), cells.map(([, count]) => count)];
  return `<h2>Relay</h2><table>${row("th", head)}${row("td", body)}</table>`;
}

/** What was looked for, and how often it was found. */
function promises(figures: readonly Figures[]): string {
  return `<h2>Promises broken</h2>${table(
    figures,
    violationKinds.map((kind) => [kind, ({ broken }: Figures) => broken[kind], true] as const),
  )}`;
}

function violations({ verdict, beganAtMs }: VerifyResult): string {
  if (verdict.violations.length === 0) return "";
  const rows = verdict.violations.slice(0, listed).map(({ kind, subject, detail, atMs }) => {
    const at = atMs === null ? "" : `${((atMs - beganAtMs) / 1_000).toFixed(2)} s`;
    return `<tr><td class="bad">${kind}</td><td>${at}</td><td>${escapeText(subject)}</td><td>${escapeText(detail)}</td></tr>`;
  });
  const more = verdict.violations.length - rows.length;
  return `<table class="list"><tr><th>broken</th><th>at</th><th>what</th><th>how</th></tr>${rows.join("")}</table>${more > 0 ? `<p>and ${more} more, in the JSON</p>` : ""}`;
}
