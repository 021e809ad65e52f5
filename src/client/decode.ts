import { type ErrorRecord, parseErrorRecord, readErrorRecord } from "../errors.ts";
import type { Job } from "../job.ts";
import type { StoredJob, TrailEntry, TrailKind } from "../store.ts";
import { traceOf, withoutTrace } from "../trace.ts";

/** A stored job as the public face shows it: texts of JSON become values, and what only stores need is left out. */
export function decodeJob(stored: StoredJob): Job {
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
    input: read("input", () => JSON.parse(input) as unknown),
    result: read("result", () => parseOrNull(result)),
    error: read("error", () => parseErrorRecord(error)),
    progress: read("progress", () => parseOrNull(progress)),
  };
  return unreadable.length === 0 ? job : { ...job, unreadable };
}

/** A line of a job's story. `noted`: a person's line, such as who edited the job and why. */
export interface TrailLine extends Omit<TrailEntry, "error" | "kind"> {
  readonly kind: TrailKind | "noted";
  readonly error: ErrorRecord | null;
}

export function decodeTrail(entry: TrailEntry): TrailLine {
  const kind = entry.kind === "log" && entry.claimer === null ? "noted" : entry.kind;
  return { ...entry, kind, error: readErrorRecord(entry.error) };
}

function parseOrNull(text: string | null): unknown {
  return text === null ? null : JSON.parse(text);
}
