import type { Occurrence } from "../api/answers.ts";
import { count, inZone, span } from "../format.ts";
import type { Tone } from "../parts/badge.tsx";
import { visible } from "../parts/visible.ts";
import { skipWords } from "./skip-words.ts";

/** The fate of an occurrence as a word, a colour and a sign. */
export interface Fate {
  readonly tone: Tone;
  readonly sign: string;
  readonly word: string;
}

const lateAfterMs = 60_000;

const fates = {
  ran: { tone: "good", sign: "\u00a0", word: "ran in time" },
  late: { tone: "warn", sign: "◔", word: "ran late" },
  caughtUp: { tone: "good", sign: "⤺", word: "ran later: caught up or backfilled" },
  retried: { tone: "good", sign: "↻", word: "ran after retries" },
  overlap: { tone: "quiet", sign: "∥", word: "skipped: the one before it was not done" },
  misfire: { tone: "quiet", sign: "▿", word: "skipped: it was missed" },
  paused: { tone: "quiet", sign: "‖", word: "skipped: paused" },
  skipped: { tone: "quiet", sign: "–", word: "skipped" },
  cancelled: { tone: "quiet", sign: "⊘", word: "cancelled" },
  dead: { tone: "bad", sign: "✕", word: "dead" },
  lost: { tone: "lost", sign: "?", word: "lost" },
  active: { tone: "busy", sign: "▸", word: "running" },
  waiting: { tone: "busy", sign: "◷", word: "waiting" },
  blocked: { tone: "busy", sign: "⋯", word: "waits for the one before it" },
  forgotten: { tone: "quiet", sign: "·", word: "planned; its job is no longer kept" },
} as const satisfies Readonly<Record<string, Fate>>;

export type FateName = keyof typeof fates;

function fateNameOf(occurrence: Occurrence): FateName {
  const { fate, lateMs, attempt, reason } = occurrence;
  if (fate === "succeeded") {
    if (attempt !== null && attempt > 1) return "retried";
    if (lateMs === null || lateMs <= lateAfterMs) return "ran";
    return plannedLateMs(occurrence) > lateAfterMs ? "caughtUp" : "late";
  }
  if (fate !== "skipped") return fate;
  const [kind = ""] = (reason ?? "").split(":");
  return kind === "overlap" || kind === "misfire" || kind === "paused" ? kind : "skipped";
}

function plannedLateMs({ plannedAt, fireAt }: Occurrence): number {
  return Date.parse(plannedAt) - Date.parse(fireAt);
}

export function fateOf(occurrence: Occurrence | FateName): Fate {
  return fates[typeof occurrence === "string" ? occurrence : fateNameOf(occurrence)];
}

/** From what needs a look most to what needs none: a cell for several shows the first that it has. */
const byWeight: readonly FateName[] = [
  ...(["lost", "dead", "late", "misfire", "overlap", "paused", "skipped", "cancelled"] as const),
  ...(["active", "waiting", "blocked", "retried", "caughtUp", "forgotten", "ran"] as const),
];

/** How many came to which fate, what needs a look first. */
export function tallyOf(
  moments: readonly { readonly of: Occurrence; readonly many: number }[],
): readonly (readonly [FateName, number])[] {
  const counts = new Map<FateName, number>();
  for (const { of, many } of moments) {
    const name = fateNameOf(of);
    counts.set(name, (counts.get(name) ?? 0) + many);
  }
  return byWeight.flatMap((name) => {
    const many = counts.get(name);
    return many === undefined ? [] : [[name, many] as const];
  });
}

const ranNames: readonly FateName[] = ["ran", "late", "retried", "caughtUp"];

/** How many ran in the end, beside the worst of them; 0 where the worst is that one of them ran late. */
export function ranBeside(tally: ReturnType<typeof tallyOf>): number {
  if (ranNames.some((name) => name === tally[0]?.[0])) return 0;
  return tally.reduce((sum, [name, many]) => (ranNames.includes(name) ? sum + many : sum), 0);
}

/** `24 occurrences: 1 dead, 23 ran in time`. */
export function tallyText(tally: ReturnType<typeof tallyOf>): string {
  const all = tally.reduce((sum, [, many]) => sum + many, 0);
  const parts = tally.map(([name, many]) => `${count(many)} ${fates[name].word}`);
  return `${count(all)} ${all === 1 ? "occurrence" : "occurrences"}: ${parts.join("; ")}`;
}

function wordAndWhy(cell: Occurrence): string {
  const { word } = fateOf(cell);
  const { fate, reason } = cell;
  if (reason === null) return word;
  const why = fate === "skipped" ? skipWords(reason) : null;
  return why === null ? `${word}, ${reason}` : `skipped: ${why}`;
}

/** The whole account of an occurrence in one line. */
export function accountOf(cell: Occurrence, zone: string): string {
  const at = (time: string): string => `${inZone(time, zone)} ${zone}`;
  const parts = [
    `${at(cell.fireAt)}${cell.until === null ? "" : ` to ${at(cell.until)}, ${cell.count} times`}: ${wordAndWhy(cell)}`,
    cell.lateMs === null ? "" : `started ${span(Math.max(0, cell.lateMs))} after its time`,
    cell.attempt === null || cell.attempt < 2 ? "" : `${cell.attempt} attempts`,
    cell.node === null ? "" : `on ${cell.node}`,
  ];
  return visible(parts.filter((part) => part !== "").join(", "));
}
