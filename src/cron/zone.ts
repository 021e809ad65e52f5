import { describe, EscapementError } from "../errors.ts";

const dayMs = 86_400_000;

/** How many days' offsets are remembered per zone before the cache is cleared: about 30 years. */
const maxRemembered = 12_000;

/**
 * A time zone: which wall time an instant shows there, and which instants show a wall time. Wall times are written as the milliseconds
 * that the same reading would be in UTC, so they can be compared and counted.
 */
export class Zone {
  readonly name: string;
  readonly #format: Intl.DateTimeFormat;
  readonly #days = new Map<number, number>();

  constructor(name: string) {
    this.name = name;
    this.#format = new Intl.DateTimeFormat("en-US", {
      timeZone: name,
      calendar: "iso8601",
      numberingSystem: "latn",
      hourCycle: "h23",
      era: "short",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
  }

  /** What the clocks on the wall show at an instant. */
  wallAt(instant: number): number {
    return instant + this.offsetAt(instant);
  }

  /** How far wall time is ahead of UTC at an instant. */
  offsetAt(instant: number): number {
    const day = Math.floor(instant / dayMs);
    const first = this.#offsetOfDay(day);
    // On all but a few days of a year the offset at both ends of the day is that of the whole day.
    return first === this.#offsetOfDay(day + 1) ? first : this.#readOffset(instant);
  }

  /** Whether the clocks keep their offset on the whole of a date, given by its midnight as a wall time, and on its neighbours. */
  isSteady(midnight: number): boolean {
    const day = Math.floor(midnight / dayMs);
    const offset = this.#offsetOfDay(day);
    for (let near = day - 2; near <= day + 3; near++) if (this.#offsetOfDay(near) !== offset) return false;
    return true;
  }

  /** The instants at which the clocks show `wall`: none in a gap, two where an hour is repeated, in order. */
  instantsOf(wall: number): number[] {
    const before = wall - this.offsetAt(wall - dayMs);
    const after = wall - this.offsetAt(wall + dayMs);
    return [...new Set([before, after])]
      .filter((instant) => this.wallAt(instant) === wall)
      .sort((a, b) => a - b);
  }

  /** The first instant after the gap that contains `wall`: the moment at which the clocks were put forward. */
  endOfGap(wall: number): number {
    // The change is between the two readings that `wall` would have had under either offset.
    let low = wall - this.offsetAt(wall + dayMs);
    let high = wall - this.offsetAt(wall - dayMs);
    if (low > high) [low, high] = [high, low];
    const offset = this.offsetAt(low - 1);
    low -= 1;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.offsetAt(middle) === offset) low = middle;
      else high = middle;
    }
    return high;
  }

  #offsetOfDay(day: number): number {
    const known = this.#days.get(day);
    if (known !== undefined) return known;
    if (this.#days.size >= maxRemembered) this.#days.clear();
    const offset = this.#readOffset(day * dayMs);
    this.#days.set(day, offset);
    return offset;
  }

  #readOffset(instant: number): number {
    // Intl shows whole seconds; what is below them is the same on every wall.
    const whole = Math.floor(instant / 1_000) * 1_000;
    const read: Record<string, number> = {};
    for (const { type, value } of this.#format.formatToParts(whole)) read[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = read;
    return Date.UTC(year, month - 1, day, hour, minute, second) - whole;
  }
}

const zones = new Map<string, Zone>();

/** @throws EscapementError `invalid-zone` for a name that no time zone has. */
export function zoneOf(name: string): Zone {
  const known = zones.get(name);
  if (known !== undefined) return known;
  try {
    const zone = new Zone(name);
    zones.set(name, zone);
    return zone;
  } catch (error) {
    throw new EscapementError(
      "invalid-zone",
      `expected timezone to be an IANA name such as "Europe/Berlin", got ${describe(name)}`,
      { cause: error },
    );
  }
}
