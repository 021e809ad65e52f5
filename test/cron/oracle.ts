/**
 * An independent answer to "when does this fire": step through real time minute by minute, ask Intl what the clocks show, and
 * compare with the fields. Slow and plain on purpose; it shares no code with src/cron.
 */

export interface OracleRules {
  readonly days?: "or" | "and";
  readonly gap?: "run-after" | "skip";
  readonly repeat?: "first" | "both";
}

/** What the clocks show at a minute. */
export interface Shown {
  readonly instant: number;
  /** Minutes since 1970 as the wall would have them in UTC. */
  readonly wall: number;
}

const minuteMs = 60_000;

/** What the clocks of a zone show at each minute of [from, to). */
export function readClocks(zone: string, from: number, to: number): Shown[] {
  const format = new Intl.DateTimeFormat("en-GB", {
    timeZone: zone,
    hourCycle: "h23",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
  });
  const shown: Shown[] = [];
  for (let instant = from; instant < to; instant += minuteMs) {
    // dd/mm/yyyy, hh:mm
    const text = format.format(instant);
    const wall = Date.UTC(
      Number(text.slice(6, 10)),
      Number(text.slice(3, 5)) - 1,
      Number(text.slice(0, 2)),
      Number(text.slice(12, 14)),
      Number(text.slice(15, 17)),
    );
    shown.push({ instant, wall: wall / minuteMs });
  }
  return shown;
}

const monthWords = "jan feb mar apr may jun jul aug sep oct nov dec".split(" ");
const dayWords = "sun mon tue wed thu fri sat".split(" ");

function numbers(
  text: string,
  min: number,
  max: number,
  words: readonly string[],
  base: number,
): Set<number> {
  const value = (word: string): number => (words.includes(word) ? words.indexOf(word) + base : Number(word));
  const found = new Set<number>();
  for (const item of text.split(",")) {
    const [range = "", step] = item.split("/");
    const [low = "", high] = range.split("-");
    const any = range === "*" || range === "?";
    const first = any ? min : value(low);
    const last = any ? max : high === undefined ? (step === undefined ? first : max) : value(high);
    for (let n = first; n <= last; n += Number(step ?? 1)) found.add(n);
  }
  return found;
}

const lengthOf = (date: Date): number =>
  new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
const isWorkday = (date: Date): boolean => date.getUTCDay() !== 0 && date.getUTCDay() !== 6;

function inMonth(date: Date, day: number): Date {
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), day));
}

/** Looks for the nearest working day by widening circles. */
function nearest(date: Date, day: number): number {
  for (let away = 0; away < 4; away++) {
    for (const candidate of [day - away, day + away]) {
      if (candidate >= 1 && candidate <= lengthOf(date) && isWorkday(inMonth(date, candidate)))
        return candidate;
    }
  }
  return 0;
}

function monthDay(item: string, date: Date): boolean {
  const day = date.getUTCDate();
  const length = lengthOf(date);
  if (item === "l") return day === length;
  if (item === "lw") {
    for (let last = length; ; last--) if (isWorkday(inMonth(date, last))) return day === last;
  }
  if (item.startsWith("l-")) return day === length - Number(item.slice(2));
  if (item.endsWith("w"))
    return Number(item.slice(0, -1)) <= length && day === nearest(date, Number(item.slice(0, -1)));
  return numbers(item, 1, 31, [], 0).has(day);
}

function weekDay(item: string, date: Date): boolean {
  const weekday = date.getUTCDay();
  const word = (text: string): number =>
    dayWords.includes(text) ? dayWords.indexOf(text) : Number(text) % 7;
  if (item.includes("#")) {
    const [day = "", nth] = item.split("#");
    return weekday === word(day) && Math.floor((date.getUTCDate() - 1) / 7) + 1 === Number(nth);
  }
  if (/^\w+l$/.test(item) && !dayWords.includes(item)) {
    return weekday === word(item.slice(0, -1)) && date.getUTCDate() > lengthOf(date) - 7;
  }
  return [...numbers(item, 0, 6, dayWords, 0)].some((day) => day % 7 === weekday);
}

/** A matcher of wall minutes, and the seconds at which it fires in each. */
function matcher(expression: string, rules: OracleRules) {
  const parts = expression.toLowerCase().split(" ");
  const [second = "0", minute = "", hour = "", dom = "", month = "", dow = ""] =
    parts.length === 6 ? parts : ["0", ...parts];
  const minutes = numbers(minute, 0, 59, [], 0);
  const hours = numbers(hour, 0, 23, [], 0);
  const months = numbers(month, 1, 12, monthWords, 1);
  const any = (text: string): boolean => text === "*" || text === "?";
  return {
    isFixed: !/[*/]/.test(minute + hour),
    seconds: [...numbers(second, 0, 59, [], 0)].sort((a, b) => a - b),
    matches(wall: number): boolean {
      const date = new Date(wall * minuteMs);
      if (!minutes.has(date.getUTCMinutes()) || !hours.has(date.getUTCHours())) return false;
      if (!months.has(date.getUTCMonth() + 1)) return false;
      const byMonth = any(dom) || dom.split(",").some((item) => monthDay(item, date));
      const byWeek = any(dow) || dow.split(",").some((item) => weekDay(item, date));
      if (any(dom) || any(dow) || rules.days === "and") return byMonth && byWeek;
      return byMonth || byWeek;
    },
  };
}

/** All firings in the minutes that were read. */
export function oracle(expression: string, rules: OracleRules, clocks: readonly Shown[]): number[] {
  const { isFixed, seconds, matches } = matcher(expression, rules);
  const both = rules.repeat === undefined ? !isFixed : rules.repeat === "both";
  const found = new Set<number>();
  let latest = Number.NEGATIVE_INFINITY;
  for (const [index, { instant, wall }] of clocks.entries()) {
    const before = clocks[index - 1];
    const skipped = before === undefined ? 0 : wall - before.wall - 1;
    if (skipped > 0 && isFixed && rules.gap !== "skip") {
      for (let gone = wall - skipped; gone < wall; gone++) if (matches(gone)) found.add(instant);
    }
    const isSecondPass = wall <= latest;
    latest = Math.max(latest, wall);
    if (matches(wall) && (both || !isSecondPass))
      for (const second of seconds) found.add(instant + second * 1_000);
  }
  return [...found].sort((a, b) => a - b);
}
