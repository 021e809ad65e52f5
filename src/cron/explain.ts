import { type CronFields, parseCron } from "./fields.ts";

const months = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];
const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const ordinals = ["first", "second", "third", "fourth", "fifth"];

/**
 * A cron expression in plain English.
 *
 * @example
 * explainCron("30 2 * * mon-fri"); // "at 02:30, on Monday to Friday"
 */
export function explainCron(expression: string, options: { readonly days?: "or" | "and" } = {}): string {
  const fields = parseCron(expression);
  const days = explainDays(fields, options.days ?? "or");
  return [explainTime(fields), ...days, ...explainMonths(fields)].join(", ");
}

function explainTime(fields: CronFields): string {
  const { seconds, minutes, hours, texts, hasSeconds } = fields;
  const single = seconds.length * minutes.length * hours.length <= 6 && !fields.isInterval;
  if (single) {
    const times = hours.flatMap((hour) =>
      minutes.flatMap((minute) =>
        seconds.map((second) => clock(hour, minute, hasSeconds && second !== 0 ? second : null)),
      ),
    );
    return `at ${join(times)}`;
  }
  const parts: string[] = [];
  if (hasSeconds && texts.second !== "0") parts.push(explainUnit(texts.second, seconds, "second"));
  if (texts.minute !== "*" || parts.length === 0) parts.push(explainUnit(texts.minute, minutes, "minute"));
  if (texts.hour !== "*") parts.push(explainHours(fields));
  return parts.join(", ");
}

function explainUnit(text: string, values: readonly number[], unit: "second" | "minute"): string {
  const of = unit === "second" ? "minute" : "hour";
  if (text === "*" || text === "?" || text === "*/1") return `every ${unit}`;
  const step = /^(?:\*|0)\/(\d+)$/.exec(text)?.[1];
  if (step !== undefined) return `every ${step} ${unit}s`;
  return `at ${unit}${values.length === 1 ? "" : "s"} ${ranges(values, String)} of the ${of}`;
}

function explainHours({ texts, hours }: CronFields): string {
  const step = /^(?:\*|0)\/(\d+)$/.exec(texts.hour)?.[1];
  if (step !== undefined) return step === "1" ? "every hour" : `every ${step} hours`;
  return `in the hour${hours.length === 1 ? "" : "s"} of ${ranges(hours, (hour) => clock(hour, 0, null))}`;
}

function explainDays(fields: CronFields, combined: "or" | "and"): string[] {
  const both = [explainMonthDays(fields), explainWeekDays(fields)].filter((parts) => parts.length > 0);
  if (both.length === 0) return [];
  if (combined === "or" || both.length === 1) return [`on ${join(both.flat(), "or")}`];
  return [`on ${both.map((parts) => join(parts, "or")).join(", if that is ")}`];
}

function explainMonthDays({ monthDays }: CronFields): string[] {
  if (monthDays === null) return [];
  const parts: string[] = [];
  const days = [...monthDays.days].sort((a, b) => a - b);
  if (days.length > 0) parts.push(`day${days.length === 1 ? "" : "s"} ${ranges(days, String)} of the month`);
  for (const distance of monthDays.fromEnd) {
    parts.push(
      distance === 0
        ? "the last day of the month"
        : `${distance} day${distance === 1 ? "" : "s"} before the last of the month`,
    );
  }
  for (const day of monthDays.nearestTo) parts.push(`the working day nearest to day ${day} of the month`);
  if (monthDays.lastWorkday) parts.push("the last working day of the month");
  return parts;
}

function explainWeekDays({ weekDays }: CronFields): string[] {
  if (weekDays === null) return [];
  const parts: string[] = [];
  const days = [...weekDays.days].sort((a, b) => a - b);
  if (days.length > 0) parts.push(ranges(days, (day) => weekdays[day] ?? ""));
  for (const { day, nth } of weekDays.nth)
    parts.push(`the ${ordinals[nth - 1]} ${weekdays[day]} of the month`);
  for (const day of weekDays.last) parts.push(`the last ${weekdays[day]} of the month`);
  return parts;
}

function explainMonths({ months: wanted }: CronFields): string[] {
  if (wanted.size === 12) return [];
  const sorted = [...wanted].sort((a, b) => a - b);
  return [`in ${ranges(sorted, (month) => months[month - 1] ?? "")}`];
}

function clock(hour: number, minute: number, second: number | null): string {
  return [hour, minute, ...(second === null ? [] : [second])]
    .map((part) => String(part).padStart(2, "0"))
    .join(":");
}

/** Neighbours of three and more become a range: "Monday to Friday". */
function ranges(values: readonly number[], name: (value: number) => string): string {
  const parts: string[] = [];
  for (let start = 0; start < values.length; ) {
    let end = start;
    while (values[end + 1] === (values[end] ?? 0) + 1) end += 1;
    const [first = 0, last = 0] = [values[start], values[end]];
    if (end - start >= 2) parts.push(`${name(first)} to ${name(last)}`);
    else for (const value of values.slice(start, end + 1)) parts.push(name(value));
    start = end + 1;
  }
  return join(parts);
}

function join(parts: readonly string[], word = "and"): string {
  return parts.length <= 1 ? (parts[0] ?? "") : `${parts.slice(0, -1).join(", ")} ${word} ${parts.at(-1)}`;
}
