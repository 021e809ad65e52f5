import type { JobState } from "../../../job.ts";
import { fixed, type Sql } from "../connection/sql.ts";

/**
 * Terminal jobs with their own retention are separate from the others in the line of their state: by their urgency, which is that
 * retention in seconds, plus one. So the index that holds them anyway also shows when to forget them.
 */
const secondMs = 1_000;
/** The column's maximum: 68 years. */
const maxKept = 2_147_483_647;

/** Rounded up to whole seconds, so no job is forgotten too early. */
export function encodeKept(ms: number | null | undefined): number | null {
  return ms == null ? null : Math.min(Math.ceil(ms / secondMs) + 1, maxKept);
}

export function decodeKept(urgency: number): number {
  return (urgency - 1) * secondMs;
}

/** The urgency of a job that ends in this state. */
export function endedUrgency(state: JobState): Sql {
  return fixed(`coalesce(kept_${state}, 0)`);
}
