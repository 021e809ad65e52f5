/** How a point in time is written, for messages. */
export const instantExample = "2026-11-15T03:00:00Z";

/** A point in time that a person wrote: ISO 8601, or a day or a month of it. Null for anything else, and for a day that no calendar has. */
export function parseInstant(text: string): Date | null {
  const date = isOnCalendar(text) ? new Date(text) : null;
  return date === null || Number.isNaN(date.getTime()) ? null : date;
}

/** `Date` would take 31 February for 3 March. */
function isOnCalendar(text: string): boolean {
  const [, year, month, day] = /^(\d{4})-(\d{2})(?:-(\d{2}))?/.exec(text) ?? [];
  if (year === undefined) return false;
  const last = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  return day === undefined || (Number(day) >= 1 && Number(day) <= last);
}
