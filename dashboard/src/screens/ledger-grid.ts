import type { Occurrence } from "../api/answers.ts";
import { addDays, localTime, weekdayOf } from "./ledger-time.ts";

/** One firing, or several of a skipped range, at its place in time. */
export interface Moment {
  readonly at: number;
  readonly many: number;
  readonly of: Occurrence;
}

/** What falls into one small part of the axis. */
export interface Slot {
  readonly key: string;
  readonly moments: readonly Moment[];
}

/** One line of the ledger: its parts are hours of a day, or parts of an hour. */
export interface Line {
  readonly key: string;
  readonly day: string;
  /** Null: the whole day. */
  readonly hour: number | null;
  readonly groups: readonly (readonly Slot[])[];
}

const hourMs = 3_600_000;
const mostOfRange = 2_000;
const hoursOfDay = Array.from({ length: 24 }, (_, hour) => hour);
/** A cell for each occurrence is drawn while no hour has more than these. */
const mostPerHour = 4;
const groupsOfHour = 12;
const minutesOfGroup = 5;

/** Every firing at its own time; a skipped range counts where its firings would have been. */
export function momentsOf(occurrences: readonly Occurrence[]): Moment[] {
  return occurrences.flatMap((of) => {
    const from = Date.parse(of.fireAt);
    if (of.until === null || of.count < 2) return [{ at: from, many: of.count, of }];
    const pieces = Math.min(of.count, mostOfRange);
    const gap = (Date.parse(of.until) - from) / (pieces - 1);
    return Array.from({ length: pieces }, (_, n) => ({
      at: from + n * gap,
      many: Math.floor(((n + 1) * of.count) / pieces) - Math.floor((n * of.count) / pieces),
      of,
    }));
  });
}

/** The days from one to another, both included. */
export function daysOf(from: string, to: string): string[] {
  const days: string[] = [];
  for (let day = from; day <= to; day = addDays(day, 1)) days.push(day);
  return days;
}

/** The Monday of a day's week. */
export function mondayOf(day: string): string {
  return addDays(day, -weekdayOf(day));
}

/** Moments by the day on which they fall. */
export function byDay(moments: readonly Moment[], zone: string): Map<string, Moment[]> {
  return Map.groupBy(moments, ({ at }) => localTime(at, zone).day);
}

/** A line for each day, with the newest first; an hour has one part, two or four. */
export function dayLines(moments: readonly Moment[], days: readonly string[], zone: string): Line[] {
  const parts = partsOfHour(moments);
  const slots = Map.groupBy(moments, ({ at }) => {
    const { day, hour, minute } = localTime(at, zone);
    return slotKey(day, hour, Math.floor((minute * parts) / 60));
  });
  return [...days].reverse().map((day) => ({
    key: day,
    day,
    hour: null,
    groups: hoursOfDay.map((hour) =>
      Array.from({ length: parts }, (_, part) => slotAt(slots, slotKey(day, hour, part))),
    ),
  }));
}

/**
 * A line for each hour of a day with a part for each minute, where the day has too many for one line: from the first hour with anything in it to
 * the last.
 */
export function hourLines(moments: readonly Moment[], day: string, zone: string): Line[] {
  const slots = Map.groupBy(moments, ({ at }) => {
    const local = localTime(at, zone);
    return slotKey(local.day, local.hour, local.minute);
  });
  const there = moments.map(({ at }) => localTime(at, zone).hour);
  const [first, last] = [there.reduce(least, 24), there.reduce(greatest, -1)];
  return hoursOfDay.slice(first, last + 1).map((hour) => ({
    key: `${day} ${hour}`,
    day,
    hour,
    groups: Array.from({ length: groupsOfHour }, (_, group) =>
      Array.from({ length: minutesOfGroup }, (_, minute) =>
        slotAt(slots, slotKey(day, hour, group * minutesOfGroup + minute)),
      ),
    ),
  }));
}

/** Whether a day needs a line for each of its hours. */
export function isDense(moments: readonly Moment[]): boolean {
  return mostInAnHour(moments) > mostPerHour;
}

function partsOfHour(moments: readonly Moment[]): 1 | 2 | 4 {
  const most = mostInAnHour(moments);
  if (most <= 1 || most > mostPerHour) return 1;
  return most === 2 ? 2 : 4;
}

function mostInAnHour(moments: readonly Moment[]): number {
  const hours = new Map<number, number>();
  let most = 0;
  for (const { at, many } of moments) {
    const hour = Math.floor(at / hourMs);
    const sum = (hours.get(hour) ?? 0) + many;
    hours.set(hour, sum);
    most = Math.max(most, sum);
  }
  return most;
}

function least(one: number, other: number): number {
  return Math.min(one, other);
}

function greatest(one: number, other: number): number {
  return Math.max(one, other);
}

function slotKey(day: string, hour: number, part: number): string {
  return `${day} ${hour} ${part}`;
}

function slotAt(slots: ReadonlyMap<string, readonly Moment[]>, key: string): Slot {
  return { key, moments: slots.get(key) ?? [] };
}
