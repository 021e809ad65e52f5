import { type DaysRule, daysInMonth, matchesDay } from "./days.ts";
import type { CronFields } from "./fields.ts";
import type { Zone } from "./zone.ts";

/** What a cron expression means where it could mean more than one thing. */
export interface CronRules {
  readonly days: DaysRule;
  /** A fixed time that the clocks skip: fires at the first moment after the gap, or not at all. */
  readonly gap: "run-after" | "skip";
  /** A time that the clocks show twice: fires the first time, or both; null: fixed times the first, intervals both. */
  readonly repeat: "first" | "both" | null;
}

export const defaultCronRules: CronRules = { days: "or", gap: "run-after", repeat: null };

const dayMs = 86_400_000;

/** A date that does not come within so many years never comes: leap years and weekdays repeat after 28, or 40 around 2100. */
const maxYears = 48;

/**
 * The instants of an expression after `after` (exclusive), in order, each once, without end where there is none. The walk is over wall times,
 * date by date, since they are what an expression is about; each is then found in real time.
 */
export function* instantsAfter(
  fields: CronFields,
  zone: Zone,
  rules: CronRules,
  after: number,
): Generator<number> {
  let last = after;
  const wall = zone.wallAt(after);
  const today = Math.floor(wall / dayMs) * dayMs;
  // Near a change of the clocks a wall time of yesterday may still be ahead in real time.
  const start = zone.isSteady(today) ? today : today - dayMs;
  for (const midnight of matchingDays(fields, rules, new Date(start))) {
    const instants = zone.isSteady(midnight)
      ? steadyInstants(fields, zone, midnight, last)
      : changingInstants(fields, zone, rules, midnight);
    for (const instant of instants) {
      if (instant <= last) continue;
      last = instant;
      yield instant;
    }
  }
}

/** On an ordinary day wall time and real time run side by side. */
function* steadyInstants(fields: CronFields, zone: Zone, midnight: number, after: number): Generator<number> {
  const offset = zone.offsetAt(midnight);
  for (const wall of wallTimes(fields, midnight, after + offset)) yield wall - offset;
}

/** On a day when the clocks change, the second pass of an early time may come after the first pass of a later one. */
function changingInstants(fields: CronFields, zone: Zone, rules: CronRules, midnight: number): number[] {
  const found: number[] = [];
  for (const wall of wallTimes(fields, midnight, Number.NEGATIVE_INFINITY)) {
    found.push(...instantsOfWall(fields, zone, rules, wall));
  }
  return found.sort((a, b) => a - b);
}

function instantsOfWall(fields: CronFields, zone: Zone, rules: CronRules, wall: number): number[] {
  const instants = zone.instantsOf(wall);
  if (instants.length === 0) {
    const moved = rules.gap === "run-after" && !fields.isInterval;
    return moved ? [zone.endOfGap(wall)] : [];
  }
  const both = rules.repeat === null ? fields.isInterval : rules.repeat === "both";
  return both ? instants : instants.slice(0, 1);
}

/** The midnights, as wall times, of the dates that an expression means. */
function* matchingDays(fields: CronFields, rules: CronRules, start: Date): Generator<number> {
  const [startYear, startMonth, startDay] = [
    start.getUTCFullYear(),
    start.getUTCMonth() + 1,
    start.getUTCDate(),
  ];
  let found = startYear;
  for (let year = startYear; year <= found + maxYears; year++) {
    for (let month = year === startYear ? startMonth : 1; month <= 12; month++) {
      if (!fields.months.has(month)) continue;
      const isStart = year === startYear && month === startMonth;
      const length = daysInMonth(year, month);
      for (let day = isStart ? startDay : 1; day <= length; day++) {
        if (!matchesDay(fields, { year, month, day }, rules.days)) continue;
        found = year;
        yield Date.UTC(year, month - 1, day);
      }
    }
  }
}

const hourMs = 3_600_000;
const minuteMs = 60_000;

/** The wall times of a date after `after`, in order. Whole hours and minutes that are over are passed by. */
function* wallTimes(
  { hours, minutes, seconds }: CronFields,
  midnight: number,
  after: number,
): Generator<number> {
  for (const hour of hours) {
    const hourAt = midnight + hour * hourMs;
    if (hourAt + hourMs <= after) continue;
    for (const minute of minutes) {
      const minuteAt = hourAt + minute * minuteMs;
      if (minuteAt + minuteMs <= after) continue;
      for (const second of seconds) {
        const wall = minuteAt + second * 1_000;
        if (wall > after) yield wall;
      }
    }
  }
}
