import type { HistoryStep } from "../history.ts";
import type { JobState } from "../job.ts";

/** The way out: jobs that dead processes held, and what is old enough to forget. */
export interface ReapingVerbs {
  /**
   * Ends claims whose lease has expired, as the outcome `crash` (reason "its lease ran out"); those still marked
   * `ahead` as the outcome `release`, which leaves the mark. Cancels expired jobs (waiting or blocked, attempt 0,
   * expireAt <= now) with the reason "expired".
   */
  reap(params: ReapParams): Promise<ReapResult>;

  /**
   * Forgets terminal jobs this long after they ended, with their trail and aliases; a job whose own retention has a
   * time for its state uses that instead. A job that still holds its unique key stays until it no longer does. `pruned`
   * counts jobs; `more` also covers ledger rows, audit entries and history.
   */
  prune(params: PruneParams): Promise<PruneResult>;
}

export interface ReapParams {
  /** How many jobs at most. */
  readonly limit: number;
  /**
   * On the store's clock for leases, as `mark` of an earlier answer: only leases that had expired by then. It bounds a
   * call that reaches the store later than its caller could know. Left out: by now.
   */
  readonly until?: number;
}

export interface ReapResult {
  readonly reaped: readonly {
    readonly id: string;
    readonly name: string;
    readonly queue: string;
    readonly state: JobState;
    readonly reason: string | null;
  }[];
  /** Whether any other lease or job has expired by now, including leases that `until` excluded. */
  readonly more: boolean;
  /** The store's clock for leases, in milliseconds from wherever it starts. */
  readonly mark: number;
}

export interface PruneParams {
  readonly succeededMs: number;
  readonly cancelledMs: number;
  readonly deadMs: number;
  readonly lostMs: number;
  /** Nodes not seen for this long, and the history's sequences of those that have not written for as long. */
  readonly nodesMs: number;
  /** Ledger rows written this long ago, up to `limit` of them, by time of writing, key and fireAt. */
  readonly occurrencesMs: number;
  /** Entries of the audit log written this long ago, up to `limit` of them. Left out: none. */
  readonly auditMs?: number;
  /** Steps of the history that began this long ago, in slices of about `limit` rows of each kind. Left out: none. */
  readonly historyMs?: Readonly<Record<HistoryStep, number>>;
  readonly limit: number;
}

export interface PruneResult {
  readonly pruned: number;
  readonly more: boolean;
}
