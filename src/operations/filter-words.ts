import { EscapementError } from "../errors.ts";
import type { JobState } from "../job.ts";
import { isTerminal } from "../state.ts";
import type { JobsFilter } from "./find-jobs.ts";

/** The words that say which jobs are meant, the same in every command and every request. */
export interface FilterWords {
  readonly state?: readonly JobState[];
  readonly name?: readonly string[];
  readonly queue?: readonly string[];
  readonly tag?: readonly string[];
  readonly delivery?: JobsFilter["deliveries"];
  readonly schedule?: string;
  readonly since?: Date;
  readonly until?: Date;
  readonly error?: string;
  readonly text?: string;
  readonly fingerprint?: string;
}

const keys = [
  "state",
  "name",
  "queue",
  "tag",
  "delivery",
  "schedule",
  "since",
  "until",
  "error",
  "text",
  "fingerprint",
] as const satisfies (keyof FilterWords)[];

export function hasFilter(words: FilterWords): boolean {
  return keys.some((key) => words[key] !== undefined);
}

/** `since` and `until` mean the end of jobs where only ended ones are asked for, and their enqueueing otherwise. */
export function filterOf(words: FilterWords): JobsFilter {
  const { state, name, queue, tag, delivery, schedule, since, until, error, text, fingerprint } = words;
  if (since !== undefined && until !== undefined && since >= until)
    throw new EscapementError(
      "invalid-option",
      `expected since to be before until (${until.toISOString()}), got ${since.toISOString()}`,
    );
  const byEnd = state !== undefined && state.length > 0 && state.every(isTerminal);
  return {
    ...(state === undefined ? {} : { states: state }),
    ...(name === undefined ? {} : { names: name }),
    ...(queue === undefined ? {} : { queues: queue }),
    ...(tag === undefined ? {} : { tags: tag }),
    ...(delivery === undefined ? {} : { deliveries: delivery }),
    ...(schedule === undefined ? {} : { schedule }),
    ...(since === undefined ? {} : { [byEnd ? "endedAfter" : "enqueuedAfter"]: since }),
    ...(until === undefined ? {} : { [byEnd ? "endedBefore" : "enqueuedBefore"]: until }),
    ...(error === undefined ? {} : { error }),
    ...(text === undefined ? {} : { text }),
    ...(fingerprint === undefined ? {} : { fingerprint }),
  };
}
