import type { FireTimes } from "../cron/spec.ts";
import { skippedOccurrence } from "../planner/plan.ts";
import type { NewOccurrence, OccurrenceRecord } from "../store/schedules.ts";

/** How many occurrences one row of the ledger accounts for, and how many rows a pause leaves at most. */
const maxCount = 100_000;
const maxRows = 100;

/**
 * The rows for what a pause skipped: a range each, however long it was.
 *
 * @param accounted rows that the ledger has already, by time: a planner may have fired while the pause was being written. A range that
 * began with one of them would be taken for it, and lost.
 */
export function pausedOccurrences(
  times: FireTimes,
  nextAt: Date | null,
  now: number,
  accounted: readonly Pick<OccurrenceRecord, "fireAt" | "until">[],
): NewOccurrence[] {
  if (nextAt === null) return [];
  const rows: NewOccurrence[] = [];
  let [first, last, count] = [0, 0, 0];
  const close = (): void => {
    if (count > 0) rows.push(skippedOccurrence(first, count === 1 ? null : last, count, "paused"));
    count = 0;
  };
  let place = 0;
  const isAccounted = (time: number): boolean => {
    while (place < accounted.length && endOf(accounted[place]) < time) place += 1;
    return (accounted[place]?.fireAt.getTime() ?? Number.POSITIVE_INFINITY) <= time;
  };
  for (const time of times.after(nextAt.getTime() - 1)) {
    if (time > now || rows.length >= maxRows) break;
    if (isAccounted(time)) {
      close();
      continue;
    }
    if (count === 0) first = time;
    last = time;
    count += 1;
    if (count >= maxCount) close();
  }
  close();
  return rows;
}

function endOf(row: Pick<OccurrenceRecord, "fireAt" | "until"> | undefined): number {
  return (row?.until ?? row?.fireAt)?.getTime() ?? Number.POSITIVE_INFINITY;
}
