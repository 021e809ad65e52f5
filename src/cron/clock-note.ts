import { zoneOf } from "./zone.ts";

const halfDayMs = 12 * 3_600_000;

/** Says so when the clocks of a zone are put forward or back within half a day of a time; null otherwise. */
export function clockNote(time: Date, timeZone: string): string | null {
  const zone = zoneOf(timeZone);
  const moved = zone.offsetAt(time.getTime() + halfDayMs) - zone.offsetAt(time.getTime() - halfDayMs);
  if (moved === 0) return null;
  return `the clocks go ${moved > 0 ? "forward" : "back"} by ${Math.abs(moved) / 60_000} minutes around this time`;
}
