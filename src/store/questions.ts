import type { Delivery, JobState } from "../job.ts";
import type { StoredJob } from "./jobs.ts";

/**
 * Questions about jobs. None is on a hot path, none changes anything, and each does a bounded amount of work. An
 * absorbed or debounced id finds the job that stands for it, in get and trail as in update, cancel and redrive.
 */
export interface QuestionVerbs {
  /** Jobs by id; null for one that is unknown. */
  get(params: { readonly ids: readonly string[] }): Promise<(StoredJob | null)[]>;

  /** A page of jobs that match, in the order of enqueueing. */
  list(params: ListParams): Promise<ListResult>;

  /** How many jobs match, by state, queue or name. */
  count(params: CountParams): Promise<CountRow[]>;

  /** What happened to a job, oldest first. */
  trail(params: { readonly id: string }): Promise<TrailEntry[]>;

  /** Jobs in outline that match, out of a bounded number of jobs looked at. */
  scan(params: ScanParams): Promise<ScanResult>;

  /** How much work each queue has. */
  depths(): Promise<Depths>;
}

/**
 * Terms are joined by and, the values inside one by or (so an empty list matches nothing); `tags` must all be present.
 * `After` is inclusive, `Before` exclusive.
 */
export interface JobFilter {
  readonly ids?: readonly string[];
  readonly states?: readonly JobState[];
  readonly names?: readonly string[];
  readonly queues?: readonly string[];
  readonly deliveries?: readonly Delivery[];
  readonly tags?: readonly string[];
  readonly schedule?: string;
  readonly enqueuedAfter?: Date;
  readonly enqueuedBefore?: Date;
  readonly runAfter?: Date;
  readonly runBefore?: Date;
}

export interface ListParams {
  readonly filter: JobFilter;
  readonly limit: number;
  readonly order: "newest" | "oldest";
  /**
   * From the previous answer to the same question; opaque. A cursor that this question did not return, in this order
   * and namespace, is refused as `invalid-cursor`: it would silently mean the start or the end.
   */
  readonly cursor: string | null;
}

export interface ListResult {
  readonly jobs: readonly StoredJob[];
  readonly cursor: string | null;
}

export type CountBy = "state" | "queue" | "name";

export interface CountParams {
  readonly filter: JobFilter;
  /** What to group by; an empty list gives one row. */
  readonly by: readonly CountBy[];
}

export interface CountRow {
  readonly state?: JobState;
  readonly queue?: string;
  readonly name?: string;
  readonly count: number;
}

export const trailKinds = [
  "failed",
  "crashed",
  "snoozed",
  "rolled-back",
  "cancel-requested",
  "updated",
  "redriven",
  "result-not-kept",
  "log",
] as const;

export type TrailKind = (typeof trailKinds)[number];

/**
 * One line of a job's trail. What the job itself says (enqueued, claimed, finished) is not repeated here. Attempt,
 * token and claimer are the job's from before the line.
 */
export interface TrailEntry {
  readonly at: Date;
  readonly kind: TrailKind;
  readonly attempt: number;
  readonly token: number;
  readonly claimer: string | null;
  /** The log line, or the reason. */
  readonly text: string | null;
  readonly error: string | null;
}

/** How many lines of a trail are kept; the oldest go first. */
export const maxTrailLength = 200;

/** The terms of a scan, in addition to those of {@link JobFilter}. A job that has not ended matches no span of ends. */
export interface ScanFilter extends JobFilter {
  readonly endedAfter?: Date;
  readonly endedBefore?: Date;
  /**
   * A string inside its reason or the record of its error, as stored. The case of ASCII letters does not matter, that
   * of others may.
   */
  readonly error?: string;
  /**
   * The same inside its input, a tag, its reason or the record of its error. If tags are kept as JSON, its
   * punctuation may match too.
   */
  readonly text?: string;
}

export interface ScanParams {
  readonly filter: ScanFilter;
  /**
   * In which order jobs are examined. `enqueued`: that of enqueueing. `ended`: by `finishedAt`, then that of
   * enqueueing; jobs that have not ended, or not within the filter's span of ends, are skipped unexamined.
   * Ends become visible in no strict order: one may appear before others that were read. @default "enqueued"
   */
  readonly by?: "enqueued" | "ended";
  readonly order: "newest" | "oldest";
  /** At most how many jobs to return. */
  readonly limit: number;
  /**
   * At most how many jobs to examine. A store skips jobs of other states and ids unexamined where it can;
   * every other term is checked on the jobs examined.
   */
  readonly lookAt: number;
  /** As in {@link ListParams}. */
  readonly cursor: string | null;
}

export interface ScanResult {
  readonly jobs: readonly JobSketch[];
  /** How many jobs were looked at. */
  readonly looked: number;
  /** Where to continue; null when every job was looked at. A page may be empty and still have one. */
  readonly cursor: string | null;
}

/** A job without what can be long: its input, result, progress and most of its error. */
export interface JobSketch
  extends Pick<
    StoredJob,
    | "id"
    | "name"
    | "queue"
    | "delivery"
    | "priority"
    | "tags"
    | "state"
    | "attempt"
    | "attempts"
    | "redrives"
    | "runAt"
    | "enqueuedAt"
    | "claimedAt"
    | "finishedAt"
    | "claimer"
    | "reason"
  > {
  /**
   * The beginning of the record of its error: {@link errorHeadLength} characters, which hold its name and the beginning
   * of its message.
   */
  readonly errorHead: string | null;
}

export const errorHeadLength = 500;

export interface Depths {
  readonly now: Date;
  /** Queues with jobs that have not ended, by name. */
  readonly queues: readonly QueueDepth[];
}

export interface QueueDepth {
  readonly queue: string;
  /** Waiting jobs that are due. */
  readonly due: number;
  /** Waiting jobs that are due later. */
  readonly later: number;
  readonly active: number;
  readonly blocked: number;
  /** The earliest runAt of those that are due. */
  readonly oldestDueAt: Date | null;
  /**
   * False if a store would have had to examine too many jobs to see which are due: some due ones are then counted
   * as later. Every other figure is exact. A queue in which nearly all are due, or nearly none, needs few jobs examined.
   */
  readonly isExact: boolean;
}
