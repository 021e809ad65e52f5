import type { JobFacts, JobState } from "../job.ts";
import type { Outcome, Success } from "../state.ts";
import type { EnqueueResult, NewJob } from "./jobs.ts";

/** The way through: how a worker takes jobs, keeps them and ends them. These are the hot paths. */
export interface ClaimVerbs {
  /**
   * Takes due, waiting jobs that are not relayed: higher priority first, then the oldest runAt, then the order of
   * enqueueing.
   * - Paused queues, queues at their limit and expired jobs are skipped.
   * - Jobs with a concurrencyKey (or else a rateKey) form a lane. While the first due job of a lane may not run, the
   *   lane waits. With more ready lanes than `limit`, the store may look only at the `limit` lanes that were ready
   *   first.
   * - A fragile job (see `isFragile`) is claimed only by a claimer that is `alone`, before all others, and as the only
   *   job. It is in no lane, but its claim obeys its keys' limits and counts for them.
   *
   * A claim raises token and attempt by one, sets claimer and claimedAt, clears the reason and starts the lease.
   */
  claim(params: ClaimParams): Promise<ClaimResult>;

  /**
   * Ends claims with their outcomes.
   * - `written`: the outcome is recorded.
   * - `repeated`: this token is the last one that was finished, and by this claimer; also if the job was claimed again
   *   since.
   * - `stale`: the claim is no longer the claimer's. An expired lease alone makes nothing stale; only the reaper's write
   *   does.
   */
  finish(params: FinishParams): Promise<FinishResult[]>;

  /** `finish`, then `claim`, in one atomic trip. */
  step(params: StepParams): Promise<StepResult>;

  /**
   * Renews leases. A claim that is extended counts as started: it is no longer marked `ahead`. `locked`: another
   * transaction holds the row, as the job's own `tx` does at its end. Its lease stays as it was and the other claims are
   * renewed anyway: a renewal never waits for a lock. Retry soon.
   */
  extend(params: ExtendParams): Promise<ExtendResult[]>;

  /** Keeps progress and log lines of claimed jobs. Reports of stale claims are dropped. */
  report(params: ReportParams): Promise<void>;

  /**
   * Runs the caller's writes and the job's success in one transaction; a stale token rolls all of it back. What `run`
   * throws is rethrown as it is, unless the store made its writes fail (a broken connection, a deadlock): then
   * a transient error is thrown, with the original as its cause.
   */
  transact<T>(params: TransactParams<T>): Promise<TransactResult<T>>;
}

export interface ClaimParams {
  readonly claimer: string;
  /**
   * Rises with each new claim of this claimer. Repeating the last one returns the same answer, minus what has ended since. A
   * store that never receives a call late or twice may remember a claim that took nothing in its handle only.
   */
  readonly sequence: number;
  readonly leaseMs: number;
  /** How many jobs the claimer will start at once, at most. */
  readonly limit: number;
  /**
   * How many more to claim ahead, next in the same order, because the claimer will start them soon. They end at the first
   * job that could be claimed now but not ahead (see `mayClaimAhead`; a job of a queue with a limit is not either), so none
   * is overtaken; while a lane is ready, a store may take none. Each is marked `ahead` until the claim is extended or
   * finished: if the holder goes silent before that, it is not the job's fault, and its next claim is a direct one. Left
   * out: none.
   */
  readonly ahead?: number;
  /** At most how many jobs of each queue, those ahead among them; null means every queue. */
  readonly queues: readonly { readonly queue: string; readonly limit: number }[] | null;
  readonly names: readonly ClaimName[];
  /** The claimer runs nothing else now. */
  readonly alone: boolean;
}

/** A definition that the claimer can run, with the limits it puts on each key. */
export interface ClaimName {
  readonly name: string;
  /** At most this many active jobs for one concurrencyKey. */
  readonly concurrency: number | null;
  /** At most this many claims for one rateKey in a window that starts with its first claim. */
  readonly rate: RateLimit | null;
}

export interface RateLimit {
  readonly limit: number;
  readonly perMs: number;
}

export interface ClaimResult {
  /** `stale`: a later sequence of this claimer was seen; nothing was claimed. */
  readonly outcome: "claimed" | "stale";
  readonly jobs: readonly ClaimedJob[];
  readonly now: Date;
  /**
   * When another claim may return more, if nothing else changes; at or before `now` means at once, null means never.
   * It may be too early, never too late.
   */
  readonly nextAt: Date | null;
  /** A fragile job is due that this claimer could take now (name, queue, limits) if it were alone. */
  readonly fragile: boolean;
}

/** What a dispatch needs to know. */
export interface ClaimedJob extends JobFacts {
  readonly input: string;
  readonly cancelRequested: boolean;
}

export interface ClaimRef {
  readonly id: string;
  readonly token: number;
}

export interface Finish extends ClaimRef {
  readonly outcome: Outcome;
}

export interface FinishParams {
  readonly claimer: string;
  readonly finishes: readonly Finish[];
}

export interface FinishResult {
  readonly outcome: "written" | "repeated" | "stale";
  /** The job's state now; null when it is unknown. */
  readonly state: JobState | null;
}

export interface StepParams {
  readonly finishes: readonly Finish[];
  readonly claim: ClaimParams;
}

export interface StepResult {
  readonly finished: readonly FinishResult[];
  readonly claimed: ClaimResult;
}

export interface ExtendParams {
  readonly claimer: string;
  readonly leaseMs: number;
  readonly claims: readonly ClaimRef[];
}

export interface ExtendResult {
  readonly outcome: "extended" | "locked" | "stale";
  readonly cancelRequested: boolean;
}

/** Progress and log lines of a claimed job. */
export interface Report {
  /** JSON; left out: unchanged. */
  readonly progress?: string;
  readonly lines: readonly string[];
}

export interface ReportParams {
  readonly claimer: string;
  readonly reports: readonly (ClaimRef & Report)[];
}

export interface TransactParams<T> extends ClaimRef {
  readonly claimer: string;
  /** The caller's writes, given the store's own transaction handle; what it returns becomes the job's result. */
  readonly run: (tx: unknown, enqueue: EnqueueWithin) => T | Promise<T>;
  /** The job's success with what `run` returned, decided by the core. */
  readonly encode: (value: T) => Success;
  /** What the job has reported and no store has written yet; called after `encode`, and written with the success. */
  readonly report?: () => Report | null;
}

/**
 * Adds jobs that exist if and when the transaction commits. It answers at once if transactions are synchronous
 * functions.
 */
export type EnqueueWithin = (jobs: readonly NewJob[]) => EnqueueResult[] | Promise<EnqueueResult[]>;

export type TransactResult<T> =
  | { readonly outcome: "committed"; readonly value: T }
  | { readonly outcome: "stale" };
