import { describe, EscapementError } from "../errors.ts";

/** The days of a month that a day-of-month field means beyond plain numbers. */
export interface MonthDays {
  readonly days: ReadonlySet<number>;
  /** `L`, `L-3`: so many days before the last. */
  readonly fromEnd: ReadonlySet<number>;
  /** `15W`: the working day nearest to it, in the same month. */
  readonly nearestTo: ReadonlySet<number>;
  /** `LW`: the last working day. */
  readonly lastWorkday: boolean;
}

/** The days of a week, 0 for Sunday, that a day-of-week field means. */
export interface WeekDays {
  readonly days: ReadonlySet<number>;
  /** `5#2`: the second Friday. */
  readonly nth: readonly { readonly day: number; readonly nth: number }[];
  /** `5L`: the last Friday. */
  readonly last: ReadonlySet<number>;
}

/** A cron expression, read. */
export interface CronFields {
  readonly expression: string;
  readonly hasSeconds: boolean;
  readonly seconds: readonly number[];
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly months: ReadonlySet<number>;
  /** Null: any day of the month. */
  readonly monthDays: MonthDays | null;
  /** Null: any day of the week. */
  readonly weekDays: WeekDays | null;
  /**
   * Whether hours or minutes are a wildcard or a step: such an expression means "so often", follows the clocks through a change and
   * fires in both passes of a repeated hour; any other means fixed times of the day.
   */
  readonly isInterval: boolean;
  /** The fields as written, for explanations. */
  readonly texts: Readonly<Record<FieldName, string>>;
}

export type FieldName = "second" | "minute" | "hour" | "day of month" | "month" | "day of week";

interface Field {
  readonly name: FieldName;
  readonly min: number;
  readonly max: number;
  readonly names: Readonly<Record<string, number>>;
}

const monthNames = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const dayNames = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const fields: readonly Field[] = [
  { name: "second", min: 0, max: 59, names: {} },
  { name: "minute", min: 0, max: 59, names: {} },
  { name: "hour", min: 0, max: 23, names: {} },
  { name: "day of month", min: 1, max: 31, names: {} },
  {
    name: "month",
    min: 1,
    max: 12,
    names: Object.fromEntries(monthNames.map((name, index) => [name, index + 1])),
  },
  {
    name: "day of week",
    min: 0,
    max: 7,
    names: Object.fromEntries(dayNames.map((name, index) => [name, index])),
  },
];

const nicknames: Readonly<Record<string, string>> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};

const maxExpressionLength = 256;

/**
 * Reads a cron expression: 5 fields, or 6 with seconds first; names in any case, 7 as Sunday, ranges, steps, lists, `L`, `W`, `LW`, `#`, `?`,
 * and `@daily` and its kin.
 *
 * @throws EscapementError `invalid-cron`, naming the field and what it may hold.
 */
export function parseCron(expression: string): CronFields {
  if (typeof expression !== "string" || expression.length > maxExpressionLength) {
    throw new EscapementError(
      "invalid-cron",
      `expected a cron expression such as "0 3 * * *", got ${describe(expression)}`,
    );
  }
  const trimmed = expression.trim().toLowerCase();
  const parts = (nicknames[trimmed] ?? trimmed).split(/\s+/);
  if (trimmed.startsWith("@") && nicknames[trimmed] === undefined) {
    throw new EscapementError(
      "invalid-cron",
      `unknown nickname ${describe(expression)}; known nicknames: ${Object.keys(nicknames).join(", ")}`,
    );
  }
  if (parts.length !== 5 && parts.length !== 6) {
    throw new EscapementError(
      "invalid-cron",
      `expected a cron expression of 5 fields, or 6 with seconds, got ${parts.length} in ${describe(expression)}`,
    );
  }
  const hasSeconds = parts.length === 6;
  const texts = (hasSeconds ? parts : ["0", ...parts]) as [string, string, string, string, string, string];
  return read(expression, texts, hasSeconds);
}

type Six<T> = readonly [T, T, T, T, T, T];

function read(expression: string, texts: Six<string>, hasSeconds: boolean): CronFields {
  const [second, minute, hour, dayOfMonth, month, dayOfWeek] = fields as unknown as Six<Field>;
  const fail: Fail = (field, why) => {
    throw new EscapementError("invalid-cron", `${field.name} of ${JSON.stringify(expression)}: ${why}`);
  };
  const numbers = (field: Field, text: string): readonly number[] =>
    [...readNumbers(field, text, fail)].sort((a, b) => a - b);
  return {
    expression,
    hasSeconds,
    seconds: numbers(second, texts[0]),
    minutes: numbers(minute, texts[1]),
    hours: numbers(hour, texts[2]),
    monthDays: isAny(texts[3]) ? null : readMonthDays(dayOfMonth, texts[3], fail),
    months: readNumbers(month, texts[4], fail),
    weekDays: isAny(texts[5]) ? null : readWeekDays(dayOfWeek, texts[5], fail),
    isInterval: [texts[1], texts[2]].some((text) => /[*?/]/.test(text)),
    texts: Object.fromEntries(fields.map(({ name }, index) => [name, texts[index]])) as CronFields["texts"],
  };
}

function isAny(text: string): boolean {
  return text === "*" || text === "?";
}

type Fail = (field: Field, why: string) => never;

function readNumbers(field: Field, text: string, fail: Fail): Set<number> {
  const found = new Set<number>();
  for (const item of text.split(",")) for (const value of readItem(field, item, fail)) found.add(value);
  return found;
}

/** One item of a list: `*`, `5`, `1-5`, each with a step if wanted. */
function readItem(field: Field, item: string, fail: Fail): number[] {
  const [range = "", stepText, ...rest] = item.split("/");
  if (rest.length > 0) return fail(field, `${describe(item)} has more than one step`);
  const step = stepText === undefined ? 1 : readStep(field, stepText, fail);
  const [from, to] = readRange(field, range, stepText !== undefined, fail);
  const values: number[] = [];
  for (let value = from; value <= to; value += step) values.push(value);
  return values;
}

function readStep(field: Field, text: string, fail: Fail): number {
  const step = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (step < 1) return fail(field, `expected a step of 1 or more, got ${describe(text)}`);
  return step;
}

function readRange(field: Field, text: string, hasStep: boolean, fail: Fail): [number, number] {
  if (text === "*" || text === "?") return [field.min, field.name === "day of week" ? 6 : field.max];
  const [first = "", last, ...rest] = text.split("-");
  if (rest.length > 0) return fail(field, `${describe(text)} is not a range`);
  const from = readValue(field, first, fail);
  // `5/15` means from 5 on, as in Vixie's and Quartz's cron.
  if (last === undefined) return [from, hasStep ? field.max : from];
  const read = readValue(field, last, fail);
  // A week may end with Sunday: mon-sun is 1-7.
  const to = field.name === "day of week" && read === 0 && from > 0 ? 7 : read;
  if (to < from)
    return fail(field, `the range ${describe(text)} runs backwards; write it as two, such as 22-23,0-2`);
  return [from, to];
}

function readValue(field: Field, text: string, fail: Fail): number {
  const value = field.names[text] ?? (/^\d{1,2}$/.test(text) ? Number(text) : Number.NaN);
  if (!(value >= field.min && value <= field.max)) {
    const names = Object.keys(field.names);
    const allowed = names.length === 0 ? "" : `, or ${names[0]} to ${names.at(-1)}`;
    return fail(field, `expected ${field.min} to ${field.max}${allowed}, got ${describe(text)}`);
  }
  return value;
}

function readMonthDays(field: Field, text: string, fail: Fail): MonthDays {
  const days = new Set<number>();
  const fromEnd = new Set<number>();
  const nearestTo = new Set<number>();
  let lastWorkday = false;
  for (const item of text.split(",")) {
    const special = /^(?:(lw|wl)|l(?:-(\d{1,2}))?|(\d{1,2})w)$/.exec(item);
    if (special === null) for (const day of readItem(field, item, fail)) days.add(day);
    else if (special[1] !== undefined) lastWorkday = true;
    else if (special[3] !== undefined) nearestTo.add(readValue(field, special[3], fail));
    else fromEnd.add(readDistance(field, special[2] ?? "0", fail));
  }
  return { days, fromEnd, nearestTo, lastWorkday };
}

function readDistance(field: Field, text: string, fail: Fail): number {
  return Number(text) > 30 ? fail(field, `L-${text} is before the start of every month`) : Number(text);
}

function readWeekDays(field: Field, text: string, fail: Fail): WeekDays {
  const days = new Set<number>();
  const nth: { day: number; nth: number }[] = [];
  const last = new Set<number>();
  for (const item of text.split(",")) {
    const special = /^(?:(\w+)#(\d+)|(\w+)l)$/.exec(item);
    const isName = field.names[item] !== undefined;
    if (item === "l") days.add(6);
    else if (special === null || isName) for (const day of readItem(field, item, fail)) days.add(day % 7);
    else if (special[3] !== undefined) last.add(readValue(field, special[3], fail) % 7);
    else
      nth.push({
        day: readValue(field, special[1] ?? "", fail) % 7,
        nth: readNth(field, special[2] ?? "", fail),
      });
  }
  return { days, nth, last };
}

function readNth(field: Field, text: string, fail: Fail): number {
  const nth = Number(text);
  return nth >= 1 && nth <= 5
    ? nth
    : fail(field, `expected # to be followed by 1 to 5, got ${describe(text)}`);
}
