import type { FireTimes } from "../cron/spec.ts";
import { EscapementError } from "../errors.ts";
import { occurrenceJob, plannedOccurrence, skippedOccurrence } from "../planner/plan.ts";
import { decodeSpec, resolveSchedule } from "../planner/schedule-spec.ts";
import { decodeTemplate } from "../planner/template.ts";
import type { NewOccurrence, ScheduleRecord } from "../store/schedules.ts";
import type { Store } from "../store/store.ts";
import { latestRows } from "./occurrences.ts";

export interface BackfillOptions {
  /** Called as it proceeds, with how many occurrences of the span it has gone through, and how many there are. */
  readonly onProgress?: (done: number, total: number) => void;
}

export interface BackfillParts extends BackfillOptions {
  find(): Promise<{ store: Store; now: number; record: ScheduleRecord }>;
  /** Inclusive. */
  readonly from: number;
  /** Inclusive, and never later than now. */
  readonly to: number;
  /** How long the ledger is kept. */
  readonly keptMs: number;
  readonly node: string;
}

/** More than this at once is a mistake, or should be done in pieces under a person's eye. */
const maxBackfill = 10_000;
const longestRangeMs = 366 * 86_400_000;
const chunk = 500;
const maxAttempts = 20;

/** Plans the occurrences of a span that were skipped or never planned. Repeating it plans nothing twice. */
export async function backfillSchedule(parts: BackfillParts): Promise<number> {
  const { record, now } = await parts.find();
  const { from } = parts;
  const to = Math.min(parts.to, now);
  if (from > to) {
    throw new EscapementError(
      "invalid-option",
      `expected from to be before to and in the past, got ${new Date(from).toISOString()}`,
    );
  }
  // A row that was forgotten could be planned a second time.
  if (from < now - parts.keptMs) {
    throw new EscapementError(
      "invalid-option",
      `expected from to be within the retention of the ledger (since ${new Date(now - parts.keptMs).toISOString()}), got ${new Date(from).toISOString()}`,
    );
  }
  const rules = resolveSchedule(decodeSpec(record.spec));
  const times: number[] = [];
  for (const time of rules.times.after(from - 1)) {
    if (time > to) break;
    times.push(time);
    if (times.length > maxBackfill) {
      throw new EscapementError(
        "invalid-option",
        `expected a backfill of at most ${maxBackfill} occurrences, got more; use a shorter span`,
      );
    }
  }
  const { store } = await parts.find();
  const leftovers = await splitRanges(store, record.key, rules.times, from, to);
  let planned = 0;
  for (let start = 0; start < times.length; start += chunk) {
    const isFirst = start === 0;
    parts.onProgress?.(start, times.length);
    planned += await planChunk(parts, times.slice(start, start + chunk), isFirst ? leftovers : []);
    parts.onProgress?.(Math.min(start + chunk, times.length), times.length);
  }
  return planned;
}

/** What is left of the ranges that reach into the span: each occurrence stays accounted for by one row. */
async function splitRanges(
  store: Store,
  key: string,
  times: FireTimes,
  from: number,
  to: number,
): Promise<NewOccurrence[]> {
  const rows = [
    ...(await latestRows(store, {
      key,
      from: new Date(from - longestRangeMs),
      to: new Date(from),
      limit: 1,
    })),
    ...(await latestRows(store, { key, from: new Date(from), to: new Date(to + 1), limit: 100_000 })),
  ];
  return rows.flatMap(({ fireAt, until, reason, fate }) => {
    if (fate !== "skipped" || until === null || until.getTime() < from) return [];
    const [first, last, why] = [fireAt.getTime(), until.getTime(), reason ?? ""];
    return [
      ...rangeRow(times, first, Math.min(from - 1, last), why),
      ...rangeRow(times, Math.max(to + 1, first), last, why),
    ];
  });
}

function rangeRow(times: FireTimes, from: number, to: number, reason: string): NewOccurrence[] {
  const inside: number[] = [];
  for (const time of times.after(from - 1)) {
    if (time > to) break;
    inside.push(time);
  }
  const [first] = inside;
  if (first === undefined) return [];
  return [
    skippedOccurrence(first, inside.length === 1 ? null : (inside.at(-1) ?? first), inside.length, reason),
  ];
}

/** The planner may advance the schedule at any moment, which makes a fire stale: then it is read again. */
async function planChunk(
  parts: BackfillParts,
  times: readonly number[],
  leftovers: readonly NewOccurrence[],
): Promise<number> {
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const { store, record } = await parts.find();
    const { key, version, nextAt } = record;
    const template = decodeTemplate(record.job);
    // Due now: at its nominal time a job would count as late by the age of the span, and start before all that is due today.
    const occurrences = times.map((time) =>
      plannedOccurrence({ ...occurrenceJob(key, time, template, 0, null), runAt: null }, time),
    );
    const rows = [...occurrences, ...leftovers];
    const fire = { key, version, nextAt, advanceTo: nextAt, occurrences: rows, replaceSkipped: true };
    const [result] = await store.fire({ node: parts.node, fires: [fire] });
    if (result?.outcome === "fired") {
      return result.occurrences.slice(0, times.length).filter((outcome) => outcome === "added").length;
    }
  }
  throw new EscapementError("store-busy", "the schedule keeps being changed by others; try again");
}
