import { EscapementError } from "./errors.ts";
import type { JobFacts } from "./job.ts";

/** A column that can hold what this library never wrote: its name on a job, who reads it, and its placeholder. */
export interface CheckedColumn<Cell> {
  readonly place: number;
  readonly field: string;
  readonly read: (cell: Cell | undefined) => unknown;
  readonly placeholder: Cell;
}

export interface Patched<Cell> {
  readonly row: readonly Cell[];
  /** The fields that could not be read. */
  readonly unreadable: readonly string[];
}

/**
 * Puts placeholders where a row cannot be read, so one row that something else has written to does not break a whole page. Only for a row that
 * was found unreadable: whole rows are read without it.
 */
export function withPlaceholders<Cell>(
  row: readonly Cell[],
  columns: readonly CheckedColumn<Cell>[],
): Patched<Cell> {
  const patched = [...row];
  const unreadable = columns.filter(({ place, read, placeholder }) => {
    try {
      read(row[place]);
      return false;
    } catch {
      patched[place] = placeholder;
      return true;
    }
  });
  return { row: patched, unreadable: unreadable.map(({ field }) => field) };
}

/** The latest instant that a Date can hold; of a later one every question is answered with NaN, or throws. */
const furthestMs = 8.64e15;

/** An instant from a column, which can hold numbers that no Date can: those read as the furthest one. */
export function instantOf(ms: number): Date {
  if (ms > furthestMs) return new Date(furthestMs);
  // Also where it is not a number.
  return new Date(ms >= -furthestMs ? ms : -furthestMs);
}

/** An unknown guarantee could be at-most-once, and the key of an effect is made of the schedule. Tags are for people. */
const neededToDispatch: readonly string[] = ["delivery", "schedule"];

/** @throws EscapementError `unreadable-row` for a claimed job that must not be dispatched. */
export function checkDispatchable({ id, unreadable }: Pick<JobFacts, "id" | "unreadable">): void {
  if (unreadable === undefined) return;
  const missing = unreadable.filter((field) => neededToDispatch.includes(field));
  if (missing.length === 0) return;
  throw new EscapementError(
    "unreadable-row",
    `${unreadableReason(missing)}; something else has written to the row of job ${JSON.stringify(id)}, or a newer version has: fix it, or cancel the job`,
  );
}

/** In the words that a job's reason has. */
export function unreadableReason(fields: readonly string[]): string {
  return `unreadable: ${fields.join(", ")}`;
}
