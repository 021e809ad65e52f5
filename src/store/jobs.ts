import type { Delivery, JobFacts, JobState } from "../job.ts";
import type { AfterFailure } from "../state.ts";
import type { JobFilter } from "./questions.ts";

/** How jobs get in, and how a person changes them. */
export interface JobVerbs {
  /**
   * Adds jobs. Each job is checked in this order, and the first case that applies is its outcome:
   * - `existing`: the id is known, as a job in any state or as an alias. Nothing changes.
   * - `refused`: a parent is unknown. The rest of the batch continues, unless `allOrNone`.
   * - `absorbed`: another job holds the unique key.
   * - `debounced`: another job took the input and moved.
   * - `added`: a new job.
   *
   * Absorbed and debounced ids are kept as aliases of the job that stands for them. In `after` an alias means that job;
   * claims and filters know a job only by its own id.
   */
  enqueue(params: EnqueueParams): Promise<EnqueueResult[]>;

  /**
   * Changes a job that is waiting or blocked, and raises its version. What is left out stays. A new time (`runAt`, or
   * now plus `delayMs`) moves fireAt to it (not for occurrences) and expireAt by as much. The trail gets an `updated`.
   */
  update(params: UpdateParams): Promise<UpdateResult>;

  /**
   * Cancels jobs that are blocked, waiting or active.
   * - `cancelled`: it was waiting or blocked. The reason given is its reason.
   * - `requested`: it is active. Its holder is notified, the trail gets one `cancel-requested`, and every end but
   *   success is `cancelled`, with the reason given ("cancelled while active" without one).
   */
  cancel(params: SelectParams): Promise<SelectResult<CancelOutcome>>;

  /**
   * Returns dead and lost jobs to waiting.
   * - `redriven`: due now, with attempt, crashes and reason reset, no expireAt, no finishedAt. Error, fireAt and trail
   *   stay; the trail gets a `redriven`, and redrives rises. It takes its unique key again.
   * - `held`: another job holds its unique key.
   * - `refused`: it is neither dead nor lost.
   */
  redrive(params: SelectParams): Promise<SelectResult<RedriveOutcome>>;

  /**
   * Deletes jobs that have ended, before their retention is over.
   * - `deleted`: removed as by `prune`, with its trail and aliases. Its ids may be used again; only the ledger still
   *   names it.
   * - `held`: it still holds its unique key for a time, and stays until that is over.
   * - `refused`: it has not ended.
   */
  remove(params: SelectParams): Promise<SelectResult<RemoveOutcome>>;
}

/** A job to add. Input is JSON; keys of limits and uniqueness already carry the definition's name. */
export interface NewJob {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly delivery: Delivery;
  readonly input: string;
  readonly priority: number;
  /** Kept as they are. One that begins with U+001F is the library's own: the trace that the job belongs to. */
  readonly tags: readonly string[];
  /** When it is due; null means now plus `delayMs`. */
  readonly runAt: Date | null;
  readonly delayMs: number;
  /** Not started this long after it was due: it expires. */
  readonly expireInMs: number | null;
  readonly attempts: number;
  readonly maxCrashes: number;
  /**
   * Its parents. It is blocked until each has succeeded. Parents in the same call count if they come before it. A
   * parent that already succeeded does not block; one that ended in another state decides at once, by `afterFailure`.
   */
  readonly after: readonly string[];
  /**
   * What happens when a parent ends in any state other than succeeded. `cancel`: it is cancelled (reason "its parent
   * <id> is <state>"), and its own children with it. `run`: as if the parent had succeeded.
   */
  readonly afterFailure: AfterFailure;
  /**
   * The first job with the key holds it: while it is not terminal where `forMs` is null, else for that long after it
   * was enqueued, whatever its state. Meanwhile another job with the key is absorbed.
   */
  readonly unique: { readonly key: string; readonly forMs: number | null } | null;
  /**
   * The first enqueued job with the key that is waiting and was never claimed takes this one's input, concurrencyKey
   * and rateKey. It moves its runAt and fireAt (not for occurrences) to now + waitMs, at most maxMs after it was
   * enqueued, and expireAt by as much as runAt; its version rises. Without such a job this one is added, due in waitMs
   * whatever `runAt` and `delayMs` say.
   */
  readonly debounce: { readonly key: string; readonly waitMs: number; readonly maxMs: number | null } | null;
  readonly concurrencyKey: string | null;
  readonly rateKey: string | null;
  /** How long it is kept after its end, whatever `prune` says for other jobs. */
  readonly retention: Retention | null;
  /**
   * Fired by the relay from its slot's partition. `claim` never sees it; finish, extend, report and transact call it
   * stale. It obeys no limits and counts for none.
   */
  readonly relayed: boolean;
  readonly slot: number;
  readonly schedule: string | null;
  /** The nominal time where it differs from runAt (jitter, late planning); null means the same. */
  readonly fireAt: Date | null;
}

/** How long a job is kept after it ended in each of the terminal states; null: as long as `prune` says. */
export interface Retention {
  readonly succeededMs: number | null;
  readonly cancelledMs: number | null;
  readonly deadMs: number | null;
  readonly lostMs: number | null;
}

export interface EnqueueParams {
  readonly jobs: readonly NewJob[];
  /** The caller's own transaction, in the form that the store documents. The jobs exist when it commits. */
  readonly tx?: unknown;
  /**
   * If one job would be refused, nothing is written: every job is answered `refused`, and the first whose parent is
   * unknown names it. Only for a batch of up to 1,000 jobs, all in one slot where slots are independent. With `tx` it has no
   * effect: the transaction decides.
   */
  readonly allOrNone?: boolean | undefined;
  /**
   * Nothing is sent before this has resolved, and the call rejects with it. The store may prepare the call meanwhile,
   * so of many batches one is encoded while the one before it is written. With `tx` it has no effect.
   */
  readonly follows?: Promise<unknown> | undefined;
}

export interface EnqueueResult {
  /** The job that stands for the requested one. */
  readonly id: string;
  readonly outcome: "added" | "existing" | "absorbed" | "debounced" | "refused";
  /** The unknown parent, for `refused`. */
  readonly parent?: string;
}

/** A job as the store keeps it. */
export interface StoredJob extends JobFacts {
  readonly state: JobState;
  readonly reason: string | null;
  readonly input: string;
  readonly result: string | null;
  readonly error: string | null;
  readonly progress: string | null;
  readonly expireAt: Date | null;
  readonly rollbacks: number;
  /** 1 at first; rises with every edit. */
  readonly version: number;
  readonly claimer: string | null;
  readonly claimedAt: Date | null;
  readonly finishedAt: Date | null;
  readonly cancelRequested: boolean;
  /** Its parents that have not ended; empty unless it is blocked. */
  readonly waitsFor: readonly string[];
  readonly concurrencyKey: string | null;
  readonly rateKey: string | null;
  readonly relayed: boolean;
  readonly slot: number;
}

export interface UpdateParams {
  readonly id: string;
  readonly input?: string;
  readonly runAt?: Date;
  readonly delayMs?: number;
  readonly priority?: number;
  readonly concurrencyKey?: string | null;
  readonly rateKey?: string | null;
}

/** `refused`: it is active or terminal; `state` says which. */
export interface UpdateResult {
  readonly outcome: "updated" | "refused" | "unknown";
  readonly state: JobState | null;
}

/**
 * Which jobs: by id, or up to `limit` that match and whose state allows the change, oldest first, after `cursor` (as in
 * `ListParams`). They are chosen first and changed then: a job that an earlier one took with it is `terminal`.
 */
export type Selection =
  | { readonly ids: readonly string[] }
  | { readonly filter: JobFilter; readonly limit: number; readonly cursor: string | null };

export interface SelectParams {
  readonly select: Selection;
  /** In plain words, kept in the trail. */
  readonly reason: string | null;
}

export type CancelOutcome = "cancelled" | "requested" | "terminal" | "unknown";
export type RedriveOutcome = "redriven" | "held" | "refused" | "unknown";
export type RemoveOutcome = "deleted" | "held" | "refused" | "unknown";

export interface SelectResult<O extends string> {
  readonly results: readonly { readonly id: string; readonly outcome: O }[];
  /** For a selection by filter that may match more: where to continue. */
  readonly cursor: string | null;
}
