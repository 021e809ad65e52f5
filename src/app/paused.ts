import type { FireTimes } from "../cron/spec.ts";
import { skippedOccurrence } from "../planner/plan.ts";
import type { NewOccurrence } from "../store.ts";

/** How many occurrences one row of the ledger stands for, and how many rows a pause leaves at the most. */
const maxCount = 100_000;
const maxRows = 100;

/**
 * The rows for what a pause skipped: a range each, however long it was.
 *
 * @param accounted times that the ledger has already: a planner may have fired them while the pause was being written. A range that
 * began with one of them would be taken for it, and lost.
 */
export function pausedOccurrences(
  times: FireTimes,
  nextAt: Date | null,
  now: number,
  accounted: ReadonlySet<number>,
): NewOccurrence[] {
  if (nextAt === null) return [];
  const rows: NewOccurrence[] = [];
  let [first, last, count] = [0, 0, 0];
  const close = (): void => {
    if (count > 0) rows.push(skippedOccurrence(first, count === 1 ? null : last, count, "paused"));
    count = 0;
  };
  for (const time of times.after(nextAt.getTime() - 1)) {
    if (time > now || rows.length >= maxRows) break;
    if (accounted.has(time)) {
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
