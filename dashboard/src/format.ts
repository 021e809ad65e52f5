const whole = new Intl.NumberFormat("en-US");
const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

export function count(value: number): string {
  return whole.format(value);
}

/** `1 job`, `1,200 jobs`. */
export function jobs(value: number): string {
  return `${whole.format(value)} ${value === 1 ? "job" : "jobs"}`;
}

/** For tiles, where a number must not be wider than its place. */
export function compact(value: number): string {
  return value < 100_000 ? whole.format(value) : short.format(value);
}

const units = [
  { name: "d", ms: 86_400_000 },
  { name: "h", ms: 3_600_000 },
  { name: "min", ms: 60_000 },
  { name: "s", ms: 1_000 },
] as const;

/** A span in at most two units: `3 min 20 s`. */
export function span(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${Math.floor(ms / 100) / 10} s`;
  const first = units.findIndex((unit) => ms >= unit.ms);
  const [big, small] = [units[first], units[first + 1]];
  if (big === undefined) return `${Math.round(ms)} ms`;
  const whole = Math.floor(ms / big.ms);
  const rest = small === undefined ? 0 : Math.floor((ms - whole * big.ms) / small.ms);
  return rest === 0 || small === undefined
    ? `${whole} ${big.name}`
    : `${whole} ${big.name} ${rest} ${small.name}`;
}

/** How long ago, or how far ahead. */
export function ago(at: string, now: number): string {
  const ms = now - Date.parse(at);
  if (Math.abs(ms) < 1_000) return "now";
  if (ms > 0) return `${coarse(ms)} ago`;
  // What is to come is planned with: "in 1 min" may not mean nearly two.
  return `in ${-ms < 60_000 ? coarse(-ms) : span(-ms)}`;
}

function coarse(ms: number): string {
  const unit = units.find((one) => ms >= one.ms) ?? { name: "s", ms: 1_000 };
  return `${Math.floor(ms / unit.ms)} ${unit.name}`;
}

const exactFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export function exact(at: string): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? at : `${exactFormat.format(date)} (${date.toISOString()})`;
}

const today = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const otherDay = new Intl.DateTimeFormat(undefined, {
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});

/** Short, as axes and strips have room for. `hour12: false` would call midnight 24:00. */
export const clockStyle = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;

/** `14:00`, by the reader's clock. */
export function timeOfDay(at: number): string {
  return new Date(at).toLocaleTimeString(undefined, clockStyle);
}

/** The time, and the day if it is not today. */
export function dayAndTime(at: string): string {
  const date = new Date(at);
  return (date.toDateString() === new Date().toDateString() ? today : otherDay).format(date);
}

/** A time as the clocks of a zone show it; in UTC where the browser does not know the zone. */
export function inZone(at: string, timeZone: string): string {
  const date = new Date(at);
  const style = {
    weekday: "short",
    year: "numeric",
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
  } as const;
  try {
    return date.toLocaleString(undefined, { ...style, timeZone });
  } catch {
    return date.toISOString();
  }
}

/** A message as a sentence: those of the API begin small and end without a stop. */
export function sentence(text: string): string {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}
