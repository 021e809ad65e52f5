import type { ErrorRecord } from "../errors.ts";
import type { Job } from "../job.ts";
import type { StoredJob, TrailEntry } from "../store.ts";

/** A stored job as the public face shows it: texts of JSON become values, and what only stores need is left out. */
export function decodeJob(stored: StoredJob): Job {
  const { input, result, error, progress, slot: _slot, ...facts } = stored;
  return {
    ...facts,
    input: JSON.parse(input),
    result: parseOrNull(result),
    error: parseOrNull(error) as ErrorRecord | null,
    progress: parseOrNull(progress),
  };
}

/** A line of a job's story. */
export interface TrailLine extends Omit<TrailEntry, "error"> {
  readonly error: ErrorRecord | null;
}

export function decodeTrail(entry: TrailEntry): TrailLine {
  return { ...entry, error: parseOrNull(entry.error) as ErrorRecord | null };
}

function parseOrNull(text: string | null): unknown {
  return text === null ? null : JSON.parse(text);
}
