import type { JobState } from "../../job.ts";
import { fixed, type Sql } from "./sql.ts";

/**
 * Jobs that have ended and are kept by a retention of their own stand apart in the line of their state: by their urgency, which is that
 * retention in seconds, and one more. So the index that has them anyway also tells when they are forgotten.
 */
const secondMs = 1_000;
/** What the column holds: 68 years. */
const maxKept = 2_147_483_647;

/** Rounded up to whole seconds, so that no job goes too early. */
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
