import { type ErrorRecord, parseErrorRecord, readErrorRecord } from "../errors.ts";
import type { Job } from "../job.ts";
import type { StoredJob } from "../store/jobs.ts";
import type { TrailEntry, TrailKind } from "../store/questions.ts";
import { traceOf, withoutTrace } from "../telemetry/trace.ts";

/** A stored job as the public face shows it: JSON strings become values, by `parse`, and what only stores need is left out. */
export function decodeJob(stored: StoredJob, parse: (text: string) => unknown = JSON.parse): Job {
  const { input, result, error, progress, tags, slot: _slot, unreadable: found = [], ...facts } = stored;
  const trace = traceOf(tags);
  const unreadable = [...found];
  const read = <T>(field: string, decode: () => T): T | null => {
    try {
      return decode();
    } catch {
      unreadable.push(field);
      return null;
    }
  };
  const job = {
    ...facts,
    tags: withoutTrace(tags),
    ...(trace === null ? {} : { trace }),
    input: read("input", () => parse(input)),
    result: read("result", () => parseOrNull(result, parse)),
    error: read("error", () => parseErrorRecord(error)),
    progress: read("progress", () => parseOrNull(progress, parse)),
  };
  return unreadable.length === 0 ? job : { ...job, unreadable };
}

/** A line of a job's trail. `noted`: a person's line, such as who edited the job and why. */
export interface TrailLine extends Omit<TrailEntry, "error" | "kind"> {
  readonly kind: TrailKind | "noted";
  readonly error: ErrorRecord | null;
}

export function decodeTrail(entry: TrailEntry): TrailLine {
  const kind = entry.kind === "log" && entry.claimer === null ? "noted" : entry.kind;
  return { ...entry, kind, error: readErrorRecord(entry.error) };
}

function parseOrNull(text: string | null, parse: (text: string) => unknown): unknown {
  return text === null ? null : parse(text);
}
