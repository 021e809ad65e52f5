import type { FaultWindow } from "./history.ts";
import type { RelayLine } from "./relay/evidence.ts";
import type { VerifyResult } from "./run.ts";

const width = 1_200;
const left = 70;
const trackHeight = 44;
const axisHeight = 28;
const bins = 240;
const markWidth = 6;

/** One picture of the run: a track for each node with its dispatches, faults as bands, violations as marks below. */
export function timelineSvg({ history, verdict, beganAtMs }: VerifyResult): string {
  const untilMs = Math.max(history.endedAtMs, beganAtMs + 1);
  const x = (atMs: number): number =>
    left + ((clamp(atMs) - beganAtMs) / (untilMs - beganAtMs)) * (width - left);
  const clamp = (atMs: number): number => Math.min(Math.max(atMs, beganAtMs), untilMs);
  const tracks = tracksOf(history);
  const dispatches = history.relay === null ? startsOf(history.lines) : publishesOf(history.relay.lines);
  const top = (track: number): number => track * trackHeight;
  const marksTop = top(tracks.length);
  const height = marksTop + trackHeight + axisHeight;
  const parts = [
    ...tracks.flatMap((track, index) => [
      label(track, top(index)),
      ...dispatchBars([...dispatches, ...consumed(history)], track, x, top(index)),
    ]),
    ...history.faults.map((fault) => band(fault, tracks, x, top)),
    label("broken", marksTop, "broken"),
    ...verdict.violations.slice(0, 500).map(({ atMs, kind, subject, detail }) => {
      const at = Math.min(x(atMs ?? untilMs), width - markWidth).toFixed(1);
      return `<path class="violation" d="M${at} ${marksTop + 10}l6 18h-12z"><title>${escapeText(`${kind}: ${subject}: ${detail}`)}</title></path>`;
    }),
    ...axis(beganAtMs, untilMs, x, marksTop + trackHeight),
  ];
  return `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="Timeline of nodes, faults and violations">${parts.join("")}</svg>`;
}

interface Mark {
  readonly node: string;
  readonly atMs: number;
}

/** The nodes, and the consumers where there are any. */
function tracksOf({ rules, lines, relay }: VerifyResult["history"]): string[] {
  const nodes = Array.from({ length: rules.nodes }, (_, slot) => String(slot + 1));
  if (relay === null) return nodes;
  return [
    ...nodes,
    ...new Set(lines.map(({ node }) => trackOf(node)).filter((track) => track.startsWith("c"))),
  ];
}

function trackOf(node: string): string {
  return node.split(".")[0] ?? "";
}

function startsOf(lines: VerifyResult["history"]["lines"]): readonly Mark[] {
  return lines.filter(({ what }) => what === "start");
}

function publishesOf(lines: readonly RelayLine[]): readonly Mark[] {
  return lines.filter(({ what }) => what === "publish");
}

function consumed({ relay, lines }: VerifyResult["history"]): readonly Mark[] {
  return relay === null ? [] : startsOf(lines);
}

function label(
  text: string,
  top: number,
  name = text.startsWith("c") ? `consumer ${text.slice(1)}` : `node ${text}`,
): string {
  const y = top + trackHeight - 1;
  return `<text x="0" y="${top + 26}">${name}</text><path class="rule" d="M${left} ${y}H${width}"/>`;
}

/** How many handlers started, or messages were published, over time. */
function dispatchBars(
  marks: readonly Mark[],
  track: string,
  x: (atMs: number) => number,
  top: number,
): string[] {
  const binWidth = (width - left) / bins;
  const counts = new Map<number, number>();
  for (const { node, atMs } of marks) {
    if (trackOf(node) !== track) continue;
    const bin = Math.min(bins - 1, Math.floor((x(atMs) - left) / binWidth));
    counts.set(bin, (counts.get(bin) ?? 0) + 1);
  }
  const most = Math.max(1, ...counts.values());
  return [...counts].map(([bin, count]) => {
    const barHeight = Math.max(2, (count / most) * (trackHeight - 10));
    const at = left + bin * binWidth;
    return `<rect class="runs" x="${at.toFixed(1)}" y="${(top + trackHeight - 2 - barHeight).toFixed(1)}" width="${(binWidth - 0.5).toFixed(1)}" height="${barHeight.toFixed(1)}"/>`;
  });
}

function band(
  { kind, node, fromMs, untilMs, detail }: FaultWindow,
  tracks: readonly string[],
  x: (atMs: number) => number,
  top: (track: number) => number,
): string {
  const track = node === null ? 0 : tracks.indexOf(trackOf(node));
  const tall = node === null ? tracks.length * trackHeight : trackHeight;
  const from = x(fromMs);
  const wide = Math.max(3, x(untilMs) - from);
  const title = escapeText(`${kind} of ${node ?? "all"}: ${detail}, ${Math.round(untilMs - fromMs)} ms`);
  return `<rect class="fault ${kind}" x="${from.toFixed(1)}" y="${top(Math.max(track, 0))}" width="${wide.toFixed(1)}" height="${tall - 2}"><title>${title}</title></rect>`;
}

function axis(beganAtMs: number, untilMs: number, x: (atMs: number) => number, top: number): string[] {
  const seconds = (untilMs - beganAtMs) / 1_000;
  const step = [1, 2, 5, 10, 30, 60, 120, 300].find((one) => seconds / one <= 12) ?? 600;
  return Array.from({ length: Math.floor(seconds / step) + 1 }, (_, index) => {
    const at = x(beganAtMs + index * step * 1_000).toFixed(1);
    return `<text class="tick" x="${at}" y="${top + 18}">${index * step} s</text><path class="rule" d="M${at} 0V${top + 4}"/>`;
  });
}

export function escapeText(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
