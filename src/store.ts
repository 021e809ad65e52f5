/**
 * THE contract. Every store implements these verbs, each atomic and batch-first; the conformance suite in
 * `escapement/testing` says in tests what the comments here say in words, and the `memory` store is the
 * executable specification.
 *
 * Rules that hold for every verb:
 * - The store's clock decides. Callers pass spans (`delayMs`, `leaseMs`), the store turns them into instants.
 * - A verb that rejects has changed nothing, or its reply was lost. Every verb may be repeated after that.
 * - Outcomes are results: a stale token, an unknown id or a job in the wrong state never rejects.
 * - Answers stand in the order of what was asked. A batch is worked off in its order, each entry seeing what those before it did.
 */
import type { Clock } from "./clock.ts";
import type { History, HistoryParams, HistoryStep, RecordHistoryParams } from "./history.ts";
import type { Delivery, JobFacts, JobOutline, JobState } from "./job.ts";
import type { Logger } from "./log.ts";
import type { Outcome, Success } from "./state.ts";

export interface Store {
  readonly capabilities: Capabilities;
  /** How a thread of its own reaches the same data, or null where only this object can. */
  readonly address: StoreAddress | null;

  /** Makes or upgrades the schema under a lock; refuses a breaking schema newer than this library. */
  migrate(): Promise<void>;
  /** What `migrate` would run now, for teams that run it by hand and for `migrate --dry-run`; empty when there is nothing to do. */
  pendingMigrations(): Promise<readonly PendingMigration[]>;
  health(): Promise<Health>;
  close(): Promise<void>;

  // Jobs: the way in.
  enqueue(params: EnqueueParams): Promise<EnqueueResult[]>;
  update(params: UpdateParams): Promise<UpdateResult>;
  cancel(params: SelectParams): Promise<SelectResult<CancelOutcome>>;
  redrive(params: SelectParams): Promise<SelectResult<RedriveOutcome>>;

  // Jobs: the way through. These are the hot paths.
  claim(params: ClaimParams): Promise<ClaimResult>;
  finish(params: FinishParams): Promise<FinishResult[]>;
  /** `finish`, then `claim`, in one atomic trip. */
  step(params: StepParams): Promise<StepResult>;
  extend(params: ExtendParams): Promise<ExtendResult[]>;
  report(params: ReportParams): Promise<void>;
  /**
   * Runs the caller's writes and the job's success in one transaction; a stale token rolls back all of it. What `run` throws comes out as it is,
   * unless the store was in the way of its writes (the connection broke, a deadlock): then a transient error comes out, with it as the cause.
   */
  transact<T>(params: TransactParams<T>): Promise<TransactResult<T>>;

  // Jobs: the way out.
  reap(params: ReapParams): Promise<ReapResult>;
  prune(params: PruneParams): Promise<PruneResult>;
  /** Forgets jobs that have ended, before their time. */
  remove(params: SelectParams): Promise<SelectResult<RemoveOutcome>>;

  // Jobs: questions. An absorbed or debounced id finds the job that stands for it, in get and trail as in update, cancel and redrive.
  get(params: { readonly ids: readonly string[] }): Promise<(StoredJob | null)[]>;
  list(params: ListParams): Promise<ListResult>;
  count(params: CountParams): Promise<CountRow[]>;
  trail(params: { readonly id: string }): Promise<TrailEntry[]>;

  // Operations: for those who look after the jobs. None of these is on a hot path, and each call does a bounded amount of work.
  /** Jobs in outline, out of a bounded number that are looked at. A plain read. */
  scan(params: ScanParams): Promise<ScanResult>;
  /** How much each queue has to do. A plain read. */
  depths(): Promise<Depths>;
  /** Adds a person's line to the trail of each job: a `log` line without a claimer. Unknown ids are passed over. */
  note(params: NoteParams): Promise<void>;
  /** Writes to the audit log. An entry whose id is known gets the new outcome, and is not written again. */
  record(params: { readonly entries: readonly NewAuditEntry[] }): Promise<void>;
  /** The audit log, newest first. A plain read. */
  audit(params: AuditParams): Promise<AuditPage>;
  /**
   * Adds figures to their minutes and hours: counts and sums add up, of a maximum the highest stays. A sequence that is not higher than the
   * last one of this node adds nothing, so a call whose reply was lost may be repeated.
   */
  recordHistory(params: RecordHistoryParams): Promise<void>;
  /** What has ended, by minute or by hour. A plain read. */
  history(params: HistoryParams): Promise<History>;

  // Queues and nodes.
  configureQueue(params: QueueChange): Promise<QueueConfig>;
  /** Queues that were configured, by name. */
  queues(): Promise<QueueConfig[]>;
  /** How much of the limits of a queue and of keys is used now. A plain read. */
  usage(params: UsageParams): Promise<Usage>;
  putNode(params: NodeRecord): Promise<void>;
  removeNode(params: { readonly id: string }): Promise<void>;
  nodes(): Promise<SeenNode[]>;

  // Schedules and their ledger.
  putSchedule(params: PutScheduleParams): Promise<PutScheduleResult>;
  removeSchedule(params: { readonly key: string }): Promise<boolean>;
  /** By key; null: all of them. */
  schedules(params: { readonly keys: readonly string[] | null }): Promise<ScheduleRecord[]>;
  dueSchedules(params: { readonly limit: number }): Promise<DueSchedules>;
  fire(params: FireParams): Promise<FireResult[]>;
  occurrences(params: OccurrencesParams): Promise<OccurrenceRecord[]>;

  // Partitions of the relay.
  /** How the namespace is cut into partitions, and who holds them. A plain read. */
  partitions(): Promise<PartitionTable>;
  acquirePartitions(params: AcquireParams): Promise<PartitionGrant[]>;
  renewPartitions(params: PartitionHold & { readonly leaseMs: number }): Promise<PartitionOutcome[]>;
  releasePartitions(params: PartitionHold): Promise<void>;
  /** What a partition will fire: waiting relayed jobs due within `aheadMs`, by runAt. A plain read. */
  partitionDue(params: PartitionDueParams): Promise<PartitionDue>;
  /** Settles the named batch, moves the mark and names the next batch, all fenced by the epoch. */
  checkpoint(params: CheckpointParams): Promise<CheckpointResult>;

  /** Hints that something changed. They may be lost, late or many; whoever listens also polls. */
  subscribe(listener: (notice: Notice) => void): Promise<() => Promise<void>>;
}

/** What a store can do, as data. */
export interface Capabilities {
  /** Whether `transact` and `enqueue({ tx })` reach a database that the caller can write to. */
  readonly transactions: boolean;
  /** Whether notices arrive from other processes. */
  readonly listen: boolean;
  readonly timePrecisionMs: number;
  /** What is left of an acknowledged write after the machine's power fails. */
  readonly durability: "full" | "weak" | "none";
  /**
   * Whether the order of claims, unique and debounce keys, limits of keys and queues, and `after` hold over the whole namespace. False
   * where it is spread over slots that know nothing of each other: order holds within each, and the rest is refused.
   */
  readonly acrossSlots: boolean;
}

/** How to open the store again from another thread: a module that exports `openStore`, and what to give it. */
export interface StoreAddress {
  readonly module: string;
  /** Structured-cloneable. */
  readonly options: unknown;
}

/** What a store is opened with. */
export interface StoreContext {
  readonly namespace: string;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Makes nothing: no file, no schema, no namespace. Where they are missing it opens all the same, for `pendingMigrations`, and
   * every other question rejects with `store-unmigrated`. @default false
   */
  readonly mustExist?: boolean;
}

/** What `sqlite(...)`, `memory()` and the others return: a store that is not open yet. */
export interface StoreFactory {
  open(context: StoreContext): Promise<Store>;
}

export interface PendingMigration {
  /** As its file is called. */
  readonly name: string;
  /** To be run as it stands, ledger entry included. */
  readonly sql: string;
}

export interface Health {
  /** The store's clock. */
  readonly now: Date;
  /** The server or engine and its version, for a person. */
  readonly engine: string;
  readonly schemaVersion: number;
  /** Facts for `doctor`, each a line: setting and value. */
  readonly details: Readonly<Record<string, string>>;
  /** What is wrong with the store itself (a missing index, a setting that weakens a promise), each with what to do. */
  readonly problems: readonly string[];
}

// ── Jobs ────────────────────────────────────────────────────────────────────────────────────────────────

/** A job to be. Texts are JSON; keys of limits and uniqueness already carry the definition's name. */
export interface NewJob {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly delivery: Delivery;
  readonly input: string;
  readonly priority: number;
  /** Kept as they are. One that begins with U+001F is the library's own: the trace that the job stands in. */
  readonly tags: readonly string[];
  /** When it is due; null means now plus `delayMs`. */
  readonly runAt: Date | null;
  readonly delayMs: number;
  /** Not started this long after it was due: it expires. */
  readonly expireInMs: number | null;
  readonly attempts: number;
  readonly maxCrashes: number;
  /**
   * Its parents. It is blocked until each has succeeded; jobs of the same call count when they stand before it. A parent that
   * already succeeded is no hindrance; one that ended otherwise decides at once, by `afterFailure`.
   */
  readonly after: readonly string[];
  /**
   * What becomes of it when a parent ends otherwise than succeeded: cancelled (reason "its parent <id> is <state>"), and its own
   * children with it; or as if it had succeeded.
   */
  readonly afterFailure: "cancel" | "run";
  /**
   * The first job with the key holds it: with `forMs` null while it is not terminal, else for that long after its enqueueing,
   * whatever its state. While it is held, another job with the key is absorbed.
   */
  readonly unique: { readonly key: string; readonly forMs: number | null } | null;
  /**
   * A waiting, never claimed job with the key (the first enqueued, of several) takes this one's input, concurrencyKey and rateKey, and
   * moves its runAt, fireAt (not for occurrences) to now + waitMs, at most maxMs after its own enqueueing, and expireAt by as much as
   * runAt; its version rises. Where there is none, this job is added, due in waitMs whatever `runAt` and `delayMs` say.
   */
  readonly debounce: { readonly key: string; readonly waitMs: number; readonly maxMs: number | null } | null;
  readonly concurrencyKey: string | null;
  readonly rateKey: string | null;
  /** How long it is kept after its end, whatever `prune` is told for other jobs. */
  readonly retention: Retention | null;
  /**
   * Fired by the relay from its slot's partition; `claim` never sees it, and finish, extend, report and transact call it stale. It
   * obeys no limits and counts for none.
   */
  readonly relayed: boolean;
  readonly slot: number;
  readonly schedule: string | null;
  /** The nominal time where it differs from runAt (jitter, late planning); null means the same. */
  readonly fireAt: Date | null;
}

/** How long a job is kept after it ended in each of the terminal states; null: as long as `prune` is told. */
export interface Retention {
  readonly succeededMs: number | null;
  readonly cancelledMs: number | null;
  readonly deadMs: number | null;
  readonly lostMs: number | null;
}

export interface EnqueueParams {
  readonly jobs: readonly NewJob[];
  /** The caller's own transaction, in the form the store documents. The jobs exist when it commits. */
  readonly tx?: unknown;
  /**
   * Where one job would be refused, nothing is written: every job is then answered `refused`, and the first whose parent is unknown names it. Only
   * for a batch of up to 1,000 jobs, all in one slot where slots know nothing of each other; with `tx` it means nothing, since that decides.
   */
  readonly allOrNone?: boolean;
}

/**
 * `added`: a new job. `existing`: this id is known (as a job in any state, or as an alias), nothing changed.
 * `absorbed`: another job holds the unique key. `debounced`: another job took the input and moved.
 * `refused`: a parent is unknown; the rest of the batch goes on. Absorbed and debounced ids are remembered as aliases of `id`.
 * They are asked in this order: existing, refused, absorbed, debounced, added. An alias also counts in `after`, where it means
 * the job it stands for; claims and filters know a job by its own id only.
 */
export interface EnqueueResult {
  /** The job that stands for what was asked. */
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

/**
 * Changes a job that is waiting or blocked, and raises its version; what is left out stays. A new time (`runAt`, or now plus
 * `delayMs`) moves fireAt to it (not for occurrences) and expireAt by as much. Its trail gets an `updated`.
 */
export interface UpdateParams {
  readonly id: string;
  readonly input?: string;
  readonly runAt?: Date;
  readonly delayMs?: number;
  readonly priority?: number;
  readonly concurrencyKey?: string | null;
  readonly rateKey?: string | null;
}

/** `refused`: it is active or terminal; `state` tells which. */
export interface UpdateResult {
  readonly outcome: "updated" | "refused" | "unknown";
  readonly state: JobState | null;
}

/**
 * Which jobs: by id, or up to `limit` that match and by their state could change (cancel: blocked, waiting, active; redrive: dead,
 * lost; remove: succeeded, cancelled, dead, lost), oldest first, after `cursor` (as in {@link ListParams}). They are chosen first and then worked off: a job that an earlier one took with it is `terminal`.
 */
export type Selection =
  | { readonly ids: readonly string[] }
  | { readonly filter: JobFilter; readonly limit: number; readonly cursor: string | null };

export interface SelectParams {
  readonly select: Selection;
  /** In plain words, kept in the trail. */
  readonly reason: string | null;
}

/**
 * `cancelled`: it was waiting or blocked; the reason given is its reason. `requested`: it is active; its holder is told, its trail gets a `cancel-requested` (once),
 * the reason given is its reason, and whatever end comes but success is `cancelled`, with that reason ("cancelled while active" where none was given).
 */
export type CancelOutcome = "cancelled" | "requested" | "terminal" | "unknown";
/**
 * `redriven`: from dead or lost to waiting, due now, with attempt, crashes and reason reset, no expireAt, no finishedAt; error, fireAt and
 * trail stay, the trail gets a `redriven`, redrives rises. `held`: another job holds its unique key (otherwise it takes the key again).
 * `refused`: it is neither dead nor lost.
 */
export type RedriveOutcome = "redriven" | "held" | "refused" | "unknown";

/**
 * `deleted`: it had ended and is forgotten as by `prune`, with its trail and aliases: its ids may be used again, and nothing tells of it but the
 * ledger. `held`: it holds its unique key for a time, and stays until it does not. `refused`: it has not ended.
 */
export type RemoveOutcome = "deleted" | "held" | "refused" | "unknown";

export interface SelectResult<O extends string> {
  readonly results: readonly { readonly id: string; readonly outcome: O }[];
  /** For a selection by filter that may match more: where to go on. */
  readonly cursor: string | null;
}

/**
 * Terms are joined by and, the values inside one by or (so that an empty list matches nothing); `tags` must all be there. `After` is
 * inclusive, `Before` exclusive.
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

/** In the order of enqueueing, newest first unless said otherwise. */
export interface ListParams {
  readonly filter: JobFilter;
  readonly limit: number;
  readonly order: "newest" | "oldest";
  /**
   * From the previous answer to the same question; opaque. One that this question did not return, in this order and namespace, is refused as
   * `invalid-cursor`: it would quietly mean the start or the end.
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

// ── Claims ──────────────────────────────────────────────────────────────────────────────────────────────

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

/**
 * Takes due, waiting jobs that are not relayed: higher priority first, then the oldest runAt, then the order of enqueueing.
 * - Paused queues, queues at their limit, and jobs that have expired are passed over.
 * - Jobs with a concurrencyKey (or else a rateKey) form a lane. Where the first due job of a lane may not go, the lane waits.
 *   With more ready lanes than `limit`, the store may look only at the `limit` lanes that were ready first.
 * - A fragile job (see `isFragile`) is claimed only by a claimer that is `alone`, before all others, and as the only job; it stands in no lane,
 *   but its claim counts for its keys' limits and obeys them.
 * A claim raises token and attempt by one, sets claimer and claimedAt, clears the reason, and starts the lease.
 */
export interface ClaimParams {
  readonly claimer: string;
  /**
   * Rises with each new claim of this claimer. Repeating the last one repeats its answer, less what has ended since. A store that no
   * call reaches late or twice may remember a claim that took nothing in its handle only.
   */
  readonly sequence: number;
  readonly leaseMs: number;
  /** How many jobs at most that the claimer starts at once. */
  readonly limit: number;
  /**
   * How many more, that it will start soon, next in the same order. They end at the first job that could be claimed now but not ahead (see
   * `mayClaimAhead`; nor is one of a queue with a limit), so that none is overtaken; while a lane is ready, a store may take none. Each is marked `ahead`
   * until the claim is extended or finished: a holder that falls silent before that is not the job's fault, and the next claim of it is a direct one.
   * Left out: none.
   */
  readonly ahead?: number;
  /** At most how many jobs of each queue, those ahead among them; null means every queue. */
  readonly queues: readonly { readonly queue: string; readonly limit: number }[] | null;
  readonly names: readonly ClaimName[];
  /** The claimer runs nothing else now. */
  readonly alone: boolean;
}

export interface ClaimResult {
  /** `stale`: a later sequence of this claimer was seen; nothing was claimed. */
  readonly outcome: "claimed" | "stale";
  readonly jobs: readonly ClaimedJob[];
  readonly now: Date;
  /**
   * When asking again may bring more, if nothing else changes; at or before `now` means at once, null means never.
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

export interface Finish {
  readonly id: string;
  readonly token: number;
  readonly outcome: Outcome;
}

export interface FinishParams {
  readonly claimer: string;
  readonly finishes: readonly Finish[];
}

/**
 * `written`, or `repeated` when this token is the last one that was finished, and by this claimer (also when the job was claimed again
 * since); `stale` when the claim is no longer the claimer's. A lease that ran out makes nothing stale, only the reaper's write does.
 */
export interface FinishResult {
  readonly outcome: "written" | "repeated" | "stale";
  /** Where the job stands now; null when it is unknown. */
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

export interface ClaimRef {
  readonly id: string;
  readonly token: number;
}

/** A claim that is extended counts as started: it is no longer marked `ahead`. */
export interface ExtendParams {
  readonly claimer: string;
  readonly leaseMs: number;
  readonly claims: readonly ClaimRef[];
}

/**
 * `locked`: another transaction has the row at this moment, as the job's own `tx` has at its end. The lease stands as it was, and the other claims
 * are renewed all the same: a renewal waits for nobody. Ask again soon.
 */
export interface ExtendResult {
  readonly outcome: "extended" | "locked" | "stale";
  readonly cancelRequested: boolean;
}

/** Progress and log lines of held jobs. Reports of stale claims are dropped. */
export interface ReportParams {
  readonly claimer: string;
  readonly reports: readonly (ClaimRef & {
    /** JSON; left out: unchanged. */
    readonly progress?: string;
    readonly lines: readonly string[];
  })[];
}

export interface TransactParams<T> extends ClaimRef {
  readonly claimer: string;
  /** The caller's writes, given the store's own transaction handle; what it returns becomes the job's result. */
  readonly run: (tx: unknown, enqueue: EnqueueWithin) => T | Promise<T>;
  /** The job's success with what `run` returned, decided by the core. */
  readonly encode: (value: T) => Success;
}

/** Writes jobs that exist if and when the transaction commits. It answers at once where transactions are synchronous functions. */
export type EnqueueWithin = (jobs: readonly NewJob[]) => EnqueueResult[] | Promise<EnqueueResult[]>;

export type TransactResult<T> =
  | { readonly outcome: "committed"; readonly value: T }
  | { readonly outcome: "stale" };

// ── Reaping, pruning, the trail ─────────────────────────────────────────────────────────────────────────

export interface ReapParams {
  /** How many jobs at the most. */
  readonly limit: number;
  /**
   * On the store's clock for leases, as `mark` of an earlier answer: only leases that had run out by then. It bounds a call that reaches the
   * store later than its caller could know. Left out: by now.
   */
  readonly until?: number;
}

/**
 * Ends claims whose lease ran out (as the outcome `crash`, reason "its lease ran out"; those still marked `ahead` as the outcome `release`, which
 * leaves the mark), and jobs that expired (waiting or blocked, attempt 0,
 * expireAt <= now: cancelled, reason "expired").
 */
export interface ReapResult {
  readonly reaped: readonly {
    readonly id: string;
    readonly name: string;
    readonly queue: string;
    readonly state: JobState;
    readonly reason: string | null;
  }[];
  /** Whether anything is left that has run out, or expired, by now: also leases that `until` left alone. */
  readonly more: boolean;
  /** What the store's clock for leases says, in milliseconds from wherever it starts. */
  readonly mark: number;
}

/**
 * Forgets terminal jobs this long after they ended, with their trail and aliases; a job whose own retention has a time for its state goes
 * by that instead. A job that still holds its unique key stays until it does not. `pruned` counts jobs; `more` also covers ledger rows, audit entries and history.
 */
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
 * One line of a job's story. What the job itself tells (enqueued, claimed, finished) is not repeated here. Attempt, token and claimer
 * are the job's as they stood before what the line tells.
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

// ── Operations ──────────────────────────────────────────────────────────────────────────────────────────

/** The terms that no index serves, beside those of {@link JobFilter}. A job that has not ended is in no span of ends. */
export interface ScanFilter extends JobFilter {
  readonly endedAfter?: Date;
  readonly endedBefore?: Date;
  /** A string inside its reason or the record of its error, as stored. The case of ASCII letters does not matter, that of others may. */
  readonly error?: string;
  /** The same inside its input, a tag, its reason or the record of its error. Where tags are kept as JSON, its punctuation may match too. */
  readonly text?: string;
}

/** In the order of enqueueing. */
export interface ScanParams {
  readonly filter: ScanFilter;
  readonly order: "newest" | "oldest";
  /** How many jobs to answer at most. */
  readonly limit: number;
  /**
   * How many jobs to look at, at most. A store passes over jobs of other states and ids without looking where it can; every other term is
   * checked on the jobs looked at.
   */
  readonly lookAt: number;
  /** As in {@link ListParams}. */
  readonly cursor: string | null;
}

export interface ScanResult {
  readonly jobs: readonly JobSketch[];
  /** How many jobs were looked at. */
  readonly looked: number;
  /** Where to go on; null when every job was looked at. A page may be empty and still have one. */
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
  /** The beginning of the record of its error: {@link errorHeadLength} characters, which hold its name and the beginning of its message. */
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
   * False where a store would have had to look at too many jobs to tell which are due: some that are due are then counted as later. Every other
   * figure is exact. A queue in which nearly all are due, or nearly none, needs few looks; one with many of both may need too many.
   */
  readonly isExact: boolean;
}

export interface NoteParams {
  readonly ids: readonly string[];
  readonly text: string;
}

/** What a person, or a program for one, is about to do, or has done. */
export interface NewAuditEntry {
  /** Made by the caller, so that a repeated write is the same entry. */
  readonly id: string;
  readonly actor: string;
  readonly action: string;
  /** What it was done to, such as `job:42` or `queue:mail`. */
  readonly target: string;
  readonly reason: string | null;
  /** JSON; null while nobody knows. */
  readonly outcome: string | null;
}

export interface AuditEntry extends NewAuditEntry {
  /** When it was written first, on the store's clock. */
  readonly at: Date;
}

export interface AuditFilter {
  readonly actors?: readonly string[];
  readonly actions?: readonly string[];
  readonly targets?: readonly string[];
  /** Inclusive. */
  readonly after?: Date;
  /** Exclusive. */
  readonly before?: Date;
}

export interface AuditParams {
  readonly filter: AuditFilter;
  readonly limit: number;
  /** From the previous answer; one that this question did not return is refused as `invalid-cursor`. */
  readonly cursor: string | null;
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  readonly cursor: string | null;
}

// ── Queues and nodes ────────────────────────────────────────────────────────────────────────────────────

export interface QueueConfig {
  readonly queue: string;
  readonly paused: boolean;
  /** Active jobs over all nodes. */
  readonly concurrency: number | null;
  /** Claims over all nodes in a window that starts with its first claim. */
  readonly rate: RateLimit | null;
}

/** What is left out stays; null takes a limit away. */
export interface QueueChange {
  readonly queue: string;
  readonly paused?: boolean;
  readonly concurrency?: number | null;
  readonly rate?: RateLimit | null;
}

/** Whose limits to look at; null where a job has no such key. */
export interface UsageParams {
  readonly queue: string;
  readonly concurrencyKey: string | null;
  readonly rateKey: string | null;
}

/** What counts against limits. The limits themselves are known elsewhere: those of queues in their configuration, those of keys to claimers. */
export interface Usage {
  readonly now: Date;
  /** Active jobs of the queue that are not relayed. */
  readonly activeInQueue: number;
  /** Active jobs with the concurrencyKey that are not relayed; 0 where no key was asked for. */
  readonly activeUnderKey: number;
  /** The queue's rate window; null when none is open. */
  readonly queueWindow: RateWindow | null;
  /** The rateKey's window; null when none is open. */
  readonly keyWindow: RateWindow | null;
}

/** A rate window, as the latest claim that counted left it. It is open from `startedAt` until `perMs` later. */
export interface RateWindow {
  readonly startedAt: Date;
  readonly perMs: number;
  /** Claims so far. */
  readonly used: number;
}

/** What a node tells of itself. */
export interface NodeRecord {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly roles: readonly string[];
  /** Null means all. */
  readonly queues: readonly string[] | null;
  readonly names: readonly string[];
  readonly concurrency: number;
  readonly active: number;
  /** How long it may be silent and still counts as alive. */
  readonly ttlMs: number;
}

export interface SeenNode extends NodeRecord {
  readonly startedAt: Date;
  readonly seenAt: Date;
  readonly alive: boolean;
}

// ── Schedules ───────────────────────────────────────────────────────────────────────────────────────────

/** A schedule as the store keeps it; what `spec` and `job` say is the core's business. */
export interface ScheduleRecord {
  readonly key: string;
  /** JSON. */
  readonly spec: string;
  /** JSON: the template of its jobs. */
  readonly job: string;
  readonly paused: boolean;
  /** The nominal time of the next occurrence; null when there is none. */
  readonly nextAt: Date | null;
  /** Rises with every edit, pause and resume, also over a removal (no version of a key comes twice); fire does not raise it. */
  readonly version: number;
  /** How many occurrences it has planned so far. */
  readonly fired: number;
  /** The job of the occurrence that was planned last. */
  readonly lastJobId: string | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export interface PutScheduleParams {
  readonly key: string;
  readonly spec: string;
  readonly job: string;
  readonly paused: boolean;
  readonly nextAt: Date | null;
  /** The version this edit rests on: null means there must be none yet. An edit keeps fired and lastJobId. */
  readonly ifVersion: number | null;
  /**
   * The nextAt that the schedule had at that version, so that an edit does not go back over what has fired since. Not asked where there must
   * be none yet.
   */
  readonly ifNextAt: Date | null;
  /** Rows for the ledger, written with the edit: what was skipped while the schedule was paused. One that is there already stays. */
  readonly skipped: readonly NewOccurrence[];
  readonly node: string;
}

/** `conflict`: somebody else was first; `schedule` is what stands now, null if it is gone. */
export interface PutScheduleResult {
  readonly outcome: "put" | "conflict";
  readonly schedule: ScheduleRecord | null;
}

export interface DueSchedules {
  readonly now: Date;
  /** Not paused, nextAt <= now, oldest first. */
  readonly due: readonly ScheduleRecord[];
  /** The earliest nextAt after now of a schedule that is not paused. */
  readonly nextAt: Date | null;
}

export type OccurrenceFate = "planned" | "skipped";

export interface NewOccurrence {
  readonly fireAt: Date;
  /** For a row that accounts for a range: its last nominal time and how many there were. */
  readonly until: Date | null;
  readonly count: number;
  readonly fate: OccurrenceFate;
  readonly reason: string | null;
  /** Null for skipped ones. */
  readonly job: NewJob | null;
}

/** Fires schedules, each by itself and in the order given: one that is stale keeps no other back. */
export interface FireParams {
  readonly node: string;
  readonly fires: readonly Fire[];
}

/**
 * Inserts the occurrences and their jobs, advances nextAt, adds the planned ones to `fired` and notes the last one's job, if key, version and the
 * old nextAt still match and the schedule is not paused; else `stale`, and nothing has changed. An occurrence already in the ledger
 * keeps its row and adds no job, unless it was skipped and `replaceSkipped` is set: then it is planned now.
 */
export interface Fire {
  readonly key: string;
  readonly version: number;
  readonly nextAt: Date | null;
  readonly occurrences: readonly NewOccurrence[];
  readonly advanceTo: Date | null;
  /** For backfills, which a paused schedule allows too: they leave nextAt as it is. */
  readonly replaceSkipped: boolean;
}

export interface FireResult {
  readonly outcome: "fired" | "stale";
  /** For each occurrence; empty when stale. */
  readonly occurrences: readonly ("added" | "existing")[];
}

export interface OccurrencesParams {
  readonly key: string;
  /** Inclusive. */
  readonly from: Date;
  /** Exclusive. */
  readonly to: Date;
  readonly limit: number;
}

/** A row of the ledger, by fireAt. */
export interface OccurrenceRecord {
  readonly key: string;
  readonly fireAt: Date;
  readonly until: Date | null;
  readonly count: number;
  readonly fate: OccurrenceFate;
  readonly reason: string | null;
  readonly jobId: string | null;
  readonly plannedAt: Date;
  readonly node: string;
}

// ── Partitions ──────────────────────────────────────────────────────────────────────────────────────────

/** How many slots a namespace has. It never changes, so a job's place never changes. */
export const slotCount = 1024;

/**
 * Takes partitions that are free or whose lease ran out. Relayed jobs that an earlier owner had named there are taken over: claimer and
 * claimedAt change, their token rises, attempt and crashes do not. Named jobs have no lease of their own; `reap` leaves them alone.
 */
export interface AcquireParams {
  readonly owner: string;
  readonly leaseMs: number;
  /**
   * How many partitions there shall be at the least; the first acquire makes them, partition i from slot floor(i * slotCount / partitions).
   * More than any acquire has asked for before: nothing is granted any more until every partition is free or its lease has run out; the
   * acquire that finds them so cuts the namespace anew, without marks, each partition under the highest epoch there was. Fewer: it stays.
   */
  readonly partitions: number;
  /** How many more to take, of those that are free or whose lease ran out. */
  readonly want: number;
}

/** A partition is slots [firstSlot, endSlot). The epoch rises with each grant. */
export interface PartitionGrant {
  readonly partition: number;
  readonly epoch: number;
  readonly firstSlot: number;
  readonly endSlot: number;
  /** How far its firing has come: a progress figure, never a filter. */
  readonly mark: Date | null;
  /** Named by an earlier owner and not settled: to be published again. They are now under this epoch. */
  readonly named: readonly ClaimedJob[];
}

export interface PartitionTable {
  /** How many partitions were asked for at the most, 0 if none yet; more than there are while holders have to give back theirs. */
  readonly wanted: number;
  /** By number; none before the first acquire. */
  readonly partitions: readonly PartitionRecord[];
}

export interface PartitionRecord extends PartitionRef {
  readonly firstSlot: number;
  readonly endSlot: number;
  readonly mark: Date | null;
  /** Who holds it; null when it is free or its lease has run out. */
  readonly owner: string | null;
}

export interface PartitionRef {
  readonly partition: number;
  readonly epoch: number;
}

export interface PartitionHold {
  readonly owner: string;
  readonly held: readonly PartitionRef[];
}

export type PartitionOutcome = "renewed" | "stale";

/** Where a job stands among the waiting of its partition: by runAt, then in the order of enqueueing, which counts from 1. */
export interface DuePlace {
  readonly runAt: Date;
  readonly order: number;
}

export interface PartitionDueParams {
  readonly partition: number;
  readonly aheadMs: number;
  readonly limit: number;
  /** Only what stands behind this place, so that what cannot be fired now hides nothing; null: from the first. */
  readonly after: DuePlace | null;
}

/** A job that is to be named; the rest of it comes with the naming, so that an input is read once, and held no longer than it has to be. */
export interface DueJob extends JobOutline {
  readonly version: number;
}

export interface PartitionDue {
  readonly now: Date;
  readonly jobs: readonly DueJob[];
  /** Where the last of the jobs stands; null when there is none. */
  readonly last: DuePlace | null;
  /** The earliest runAt behind the last that was left out. */
  readonly nextAt: Date | null;
}

export interface CheckpointParams {
  readonly owner: string;
  readonly partition: number;
  readonly epoch: number;
  readonly settled: readonly Finish[];
  /** Null leaves it where it is. */
  readonly mark: Date | null;
  /**
   * To be named: those no longer waiting, due within `aheadMs`, unexpired, of this version and in this partition are left out. One that
   * this epoch already named and has not settled is answered again as it stands, so that a lost reply strands nothing.
   */
  readonly name: readonly { readonly id: string; readonly version: number }[];
  /** How long before its time a job may be named. Whoever is given one, also by a takeover, keeps it until its time. */
  readonly aheadMs: number;
}

export interface CheckpointResult {
  readonly outcome: "written" | "stale";
  readonly finished: readonly FinishResult[];
  /** Only these may be published. Their token has risen; they are active. */
  readonly named: readonly ClaimedJob[];
}

// ── Notices ─────────────────────────────────────────────────────────────────────────────────────────────

/**
 * `jobs`: something became claimable in these queues (null: perhaps any). `cancel`: active jobs were asked to stop.
 * `ended`: jobs reached a terminal state. `schedules`: a schedule changed. `queues`: a queue's configuration changed.
 */
export type Notice =
  | { readonly kind: "jobs"; readonly queues: readonly string[] | null }
  | { readonly kind: "cancel"; readonly ids: readonly string[] }
  | { readonly kind: "ended"; readonly ids: readonly string[] | null }
  | { readonly kind: "schedules" }
  | { readonly kind: "queues" };
