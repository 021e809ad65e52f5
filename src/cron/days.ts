import type { CronFields, MonthDays, WeekDays } from "./fields.ts";

/** A date, 1 for January. */
export interface CalendarDay {
  readonly year: number;
  readonly month: number;
  readonly day: number;
}

/** How a day of the month and a day of the week combine where both are given. */
export type DaysRule = "or" | "and";

export function daysInMonth(year: number, month: number): number {
  return new Date(Date.UTC(year, month, 0)).getUTCDate();
}

/** 0 for Sunday. */
function weekdayOf({ year, month, day }: CalendarDay): number {
  return new Date(Date.UTC(year, month - 1, day)).getUTCDay();
}

/** Whether an expression means a date. The month has been looked at before. */
export function matchesDay(fields: CronFields, date: CalendarDay, rule: DaysRule): boolean {
  const { monthDays, weekDays } = fields;
  if (monthDays === null) return weekDays === null || isWeekDay(weekDays, date);
  if (weekDays === null) return isMonthDay(monthDays, date);
  return rule === "or"
    ? isMonthDay(monthDays, date) || isWeekDay(weekDays, date)
    : isMonthDay(monthDays, date) && isWeekDay(weekDays, date);
}

function isMonthDay(wanted: MonthDays, date: CalendarDay): boolean {
  if (wanted.days.has(date.day)) return true;
  const length = daysInMonth(date.year, date.month);
  if (wanted.fromEnd.has(length - date.day)) return true;
  if (wanted.lastWorkday && date.day === nearestWorkday({ ...date, day: length })) return true;
  // A day that the month does not have has no neighbours either.
  return [...wanted.nearestTo].some((day) => day <= length && date.day === nearestWorkday({ ...date, day }));
}

/** The working day nearest to a date without leaving its month. */
function nearestWorkday(date: CalendarDay): number {
  const weekday = weekdayOf(date);
  if (weekday === 6) return date.day > 1 ? date.day - 1 : date.day + 2;
  if (weekday === 0) return date.day < daysInMonth(date.year, date.month) ? date.day + 1 : date.day - 2;
  return date.day;
}

function isWeekDay(wanted: WeekDays, date: CalendarDay): boolean {
  const weekday = weekdayOf(date);
  if (wanted.days.has(weekday)) return true;
  if (wanted.last.has(weekday) && date.day + 7 > daysInMonth(date.year, date.month)) return true;
  return wanted.nth.some(({ day, nth }) => day === weekday && Math.ceil(date.day / 7) === nth);
}
