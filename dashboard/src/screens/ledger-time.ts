/** A time as the clocks of a zone show it. */
export interface LocalTime {
  /** `2026-11-03` */
  readonly day: string;
  readonly hour: number;
  readonly minute: number;
}

const minuteMs = 60_000;
const dayMs = 86_400_000;
/** Zones change their offset at a multiple of this. */
const stepMs = 15 * minuteMs;

const offsets = new Map<string, number>();
const formats = new Map<string, Intl.DateTimeFormat | null>();

export function localTime(ms: number, zone: string): LocalTime {
  const local = new Date(ms + offsetAt(ms, zone));
  return {
    day: local.toISOString().slice(0, 10),
    hour: local.getUTCHours(),
    minute: local.getUTCMinutes(),
  };
}

/** When a day begins in a zone. */
export function startOfDay(day: string, zone: string): number {
  const nominal = Date.parse(`${day}T00:00:00Z`);
  const guess = nominal - offsetAt(nominal, zone);
  return nominal - offsetAt(guess, zone);
}

/** A time as a field for local times holds it. */
export function toField(ms: number, zone: string): string {
  const text = new Date(ms + offsetAt(ms, zone)).toISOString().slice(0, 19);
  return text.endsWith(":00") ? text.slice(0, 16) : text;
}

/** The time that such a field holds; null where it holds none. */
export function fromField(text: string, zone: string): string | null {
  const nominal = Date.parse(`${text}Z`);
  if (Number.isNaN(nominal)) return null;
  const guess = nominal - offsetAt(nominal, zone);
  return new Date(nominal - offsetAt(guess, zone)).toISOString();
}

/** The zone of the reader's clock. */
export const ownZone = new Intl.DateTimeFormat().resolvedOptions().timeZone;

export function addDays(day: string, days: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + days * dayMs).toISOString().slice(0, 10);
}

/** 0 for Monday, 6 for Sunday. */
export function weekdayOf(day: string): number {
  return (new Date(`${day}T00:00:00Z`).getUTCDay() + 6) % 7;
}

/** Whether it is a day of the calendar, written as in an address. */
export function isDay(text: string | null): text is string {
  if (text === null || !/^\d{4}-\d\d-\d\d$/.test(text)) return false;
  const at = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(text);
}

/** `Tue 3 Nov`, in the order of the reader's language. */
export function dayName(day: string, style: Intl.DateTimeFormatOptions = {}): string {
  const usual = { weekday: "short", day: "numeric", month: "short" } as const;
  const given = Object.keys(style).length === 0 ? usual : style;
  return new Date(`${day}T00:00:00Z`).toLocaleDateString(undefined, { ...given, timeZone: "UTC" });
}

function offsetAt(ms: number, zone: string): number {
  const step = Math.floor(ms / stepMs);
  const key = `${zone} ${step}`;
  const known = offsets.get(key);
  if (known !== undefined) return known;
  const offset = askOffset(step * stepMs, zone);
  offsets.set(key, offset);
  return offset;
}

function askOffset(ms: number, zone: string): number {
  const format = formatOf(zone);
  if (format === null) return 0;
  const part = new Map(format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
  const of = (type: Intl.DateTimeFormatPartTypes): number => part.get(type) ?? 0;
  return Date.UTC(of("year"), of("month") - 1, of("day"), of("hour"), of("minute"), of("second")) - ms;
}

/** Null if the browser does not know the zone: then it is taken for UTC. */
function formatOf(zone: string): Intl.DateTimeFormat | null {
  const known = formats.get(zone);
  if (known !== undefined) return known;
  const format = newFormat(zone);
  formats.set(zone, format);
  return format;
}

function newFormat(timeZone: string): Intl.DateTimeFormat | null {
  const number = "numeric";
  try {
    return new Intl.DateTimeFormat("en-US", {
      timeZone,
      hourCycle: "h23",
      year: number,
      month: number,
      day: number,
      hour: number,
      minute: number,
      second: number,
    });
  } catch {
    return null;
  }
}
