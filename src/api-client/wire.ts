// Made from the schemas of the API by `npm run generate`; do not edit.

export interface Me {
  readonly actor: string;
  readonly role: "read" | "operate" | "admin";
  readonly namespace: string;
  readonly version: string;
  /** A sentence that the dashboard shows to everyone. */
  readonly notice: string | null;
}

export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: string;
}

export interface Overview {
  readonly now: string;
  readonly counts: readonly CountRow[];
  readonly queues: readonly QueueView[];
  readonly nodes: readonly Node[];
  readonly failures: Failures;
}

export interface CountRow {
  readonly state?: JobState;
  readonly queue?: string;
  readonly name?: string;
  readonly count: number;
}

export type JobState = "blocked" | "waiting" | "active" | "succeeded" | "dead" | "lost" | "cancelled";

export interface QueueView {
  readonly queue: string;
  readonly paused: boolean;
  readonly concurrency: number | null;
  readonly rate: Rate | null;
  readonly due: number;
  readonly later: number;
  readonly active: number;
  readonly blocked: number;
  readonly oldestDueAt: string | null;
  readonly oldestDueMs: number | null;
  readonly isExact: boolean;
}

export interface Rate {
  readonly limit: number;
  readonly perMs: number;
}

export interface Node {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly roles: readonly string[];
  readonly queues: readonly string[] | null;
  readonly names: readonly string[];
  readonly concurrency: number;
  readonly active: number;
  readonly ttlMs: number | null;
  /** Jobs that it has been running for a second or longer, as of seenAt; the longest 20. */
  readonly running?: readonly {
    readonly id: string;
    readonly name: string;
    readonly forMs: number;
    readonly leaseMs: number;
  }[];
  /** Where its relay publishes, as of seenAt; at most 20, those in trouble first. */
  readonly destinations?: readonly Destination[];
  /** Partitions of its relay with a job that is due and not published, as of seenAt; at most 20. */
  readonly lags?: readonly {
    readonly partition: number;
    readonly lagMs: number;
  }[];
  readonly startedAt: string;
  readonly seenAt: string;
  readonly alive: boolean;
}

export interface Destination {
  readonly transport: string;
  readonly destination: string;
  /** Consecutive batches that failed. */
  readonly failures: number;
  readonly error: string | null;
}

export interface Failures {
  readonly groups: readonly FailureGroup[];
  readonly count: number;
  readonly looked: number;
  readonly isPartial: boolean;
  /** The first end among them; null without any. */
  readonly from: string | null;
  readonly to: string | null;
}

export interface FailureGroup {
  readonly fingerprint: string;
  readonly shape: string;
  readonly name: string;
  readonly state: "dead" | "lost";
  readonly count: number;
  readonly firstAt: string;
  readonly lastAt: string;
  readonly sampleId: string;
  readonly sample: string;
  /** How many ended when: equal parts of the time from `from` to `to`. */
  readonly spark: readonly number[];
}

export interface Counts {
  readonly counts: readonly CountRow[];
}

export interface Definitions {
  readonly definitions: readonly Definition[];
}

export interface Definition {
  readonly name: string;
  readonly queue: string;
  readonly delivery: "at-most-once" | "at-least-once" | "effectively-once";
  /** Null: the app's setting. */
  readonly attempts: number | null;
  /** How its jobs are published; null: they are not. */
  readonly transport: string | null;
  /** Where: a topic, subject, stream or URL. */
  readonly destination: string | null;
}

export interface History {
  /** By time, then by queue or name. A step in which nothing happened has no point. */
  readonly points: readonly HistoryPoint[];
  /** The limit cut off later points. */
  readonly more: boolean;
  /** The upper bounds of late, inclusive. */
  readonly lateBoundsMs: readonly number[];
}

export interface HistoryPoint {
  /** When the minute or hour begins, on the store's clock. */
  readonly at: string;
  /** With by=queue. */
  readonly queue?: string;
  /** With by=name. */
  readonly name?: string;
  readonly succeeded: number;
  /** Attempts that failed and are retried. */
  readonly failed: number;
  /** Attempts whose holder died or went silent, and that are retried. */
  readonly crashed: number;
  readonly dead: number;
  readonly lost: number;
  /** Cancelled while active, or expired. */
  readonly cancelled: number;
  /** Enqueues of an id that already existed. */
  readonly existing: number;
  /** Enqueues absorbed by a unique key. */
  readonly absorbed: number;
  /** Outcomes refused because another claim had taken over. */
  readonly stale: number;
  /** Dispatches retried because the batch could not be named in the store. */
  readonly namingRetries: number;
  /** Dispatches retried because the broker refused them or did not answer. */
  readonly publishRetries: number;
  /** Rollbacks of dispatches that could not be written. */
  readonly rollbackRetries: number;
  /** How many handlers were timed. */
  readonly runs: number;
  readonly runSumMs: number;
  readonly runMaxMs: number;
  /** Time from when jobs were due until they started. */
  readonly lateSumMs: number;
  readonly lateMaxMs: number;
  /** How many started how late: one figure for each of lateBoundsMs, and one for later. */
  readonly late: readonly number[];
  /** The most jobs that were due and waiting at once. 0 with by=name or a name. */
  readonly dueMax: number;
}

export interface Health {
  readonly now: string;
  readonly engine: string;
  readonly schemaVersion: number;
  readonly problems: readonly string[];
  readonly version: string;
}

export interface Nodes {
  readonly nodes: readonly Node[];
}

export interface Partitions {
  readonly wanted: number;
  readonly partitions: readonly {
    readonly partition: number;
    readonly epoch: number;
    readonly firstSlot: number;
    readonly endSlot: number;
    readonly mark: string | null;
    readonly owner: string | null;
  }[];
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  readonly cursor: string | null;
}

export interface AuditEntry {
  readonly id: string;
  readonly at: string;
  readonly actor: string;
  readonly action: string;
  readonly target: string;
  readonly reason: string | null;
  /** Null while it is in progress, or when the process was killed in the middle. */
  readonly outcome?: unknown;
}

export interface LastVerifyReport {
  readonly report: VerifyReport | null;
  /** Why it cannot be read. */
  readonly problem: string | null;
}

export interface VerifyReport {
  readonly at: string;
  readonly valid: boolean;
  /** Options that reproduce the run. */
  readonly command: string;
  readonly engine: string;
  readonly durationMs: number;
  readonly guarantees: readonly VerifiedGuarantee[];
  readonly faults: Readonly<Record<string, number>>;
  readonly staleRefused: number;
  readonly recovery: {
    readonly count: number;
    readonly p50Ms: number;
    readonly p99Ms: number;
  };
  readonly violationCount: number;
  readonly violations: readonly {
    readonly kind: string;
    readonly subject: string;
    readonly detail: string;
  }[];
}

export interface VerifiedGuarantee {
  readonly delivery: "at-most-once" | "at-least-once" | "effectively-once";
  readonly jobs: number;
  readonly dispatches: number;
  readonly reruns: number;
  readonly succeeded: number;
  readonly givenUp: number;
  readonly effects: number;
  readonly broken: number;
}

export interface JobsPage {
  readonly jobs: readonly JobSummary[];
  /** How many jobs were searched for this page. */
  readonly looked: number;
  /** Cursor of the next page; null at the end. A short page may have one. */
  readonly cursor: string | null;
}

export interface JobSummary {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly delivery: Delivery;
  readonly priority: number;
  readonly tags: readonly string[];
  readonly state: JobState;
  readonly attempt: number;
  readonly attempts: number;
  readonly redrives: number;
  readonly runAt: string;
  readonly enqueuedAt: string;
  readonly claimedAt: string | null;
  readonly finishedAt: string | null;
  readonly claimer: string | null;
  readonly reason: string | null;
  readonly error: {
    readonly name: string;
    readonly message: string;
  } | null;
}

export type Delivery = "at-most-once" | "at-least-once" | "effectively-once";

export interface Receipt {
  readonly id: string;
  readonly outcome: "added" | "existing" | "absorbed" | "debounced";
}

export interface NewJob {
  readonly name: string;
  /** Any JSON. */
  readonly input?: unknown;
  readonly id?: string;
  /** Milliseconds, or a number with a unit: 250ms, 30s, 1.5h. */
  readonly delay?: number | string;
  readonly runAt?: string;
  readonly priority?: number;
  readonly tags?: readonly string[];
  /** Milliseconds, or a number with a unit: 250ms, 30s, 1.5h. */
  readonly expireIn?: number | string;
  readonly attempts?: number;
  readonly after?: readonly string[];
  readonly afterFailure?: "cancel" | "run";
  /** Kept in the trail and the audit log. */
  readonly reason?: string;
}

export interface JobStory {
  readonly job: Job;
  readonly trail: readonly TrailLine[];
  readonly diagnosis: Diagnosis | null;
}

export interface Job {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly delivery: Delivery;
  readonly priority: number;
  readonly tags: readonly string[];
  readonly runAt: string;
  readonly fireAt: string;
  readonly enqueuedAt: string;
  readonly attempt: number;
  readonly attempts: number;
  readonly crashes: number;
  readonly maxCrashes: number;
  readonly redrives: number;
  readonly token: number;
  readonly schedule: string | null;
  readonly unreadable?: readonly string[];
  readonly state: JobState;
  readonly reason: string | null;
  /** Any JSON. */
  readonly input?: unknown;
  /** Any JSON. */
  readonly result?: unknown;
  readonly error: ErrorRecord | null;
  /** Any JSON. */
  readonly progress?: unknown;
  readonly expireAt: string | null;
  readonly rollbacks: number;
  readonly relayed: boolean;
  readonly version: number;
  readonly claimer: string | null;
  readonly claimedAt: string | null;
  readonly finishedAt: string | null;
  readonly cancelRequested: boolean;
  readonly waitsFor: readonly string[];
  readonly concurrencyKey: string | null;
  readonly rateKey: string | null;
  /** The W3C Trace Context in which it was enqueued. */
  readonly trace?: {
    readonly traceparent: string;
    readonly tracestate?: string;
  };
}

export interface ErrorRecord {
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
  readonly code?: string;
}

export interface TrailLine {
  readonly at: string;
  readonly kind:
    | "failed"
    | "crashed"
    | "snoozed"
    | "rolled-back"
    | "cancel-requested"
    | "updated"
    | "redriven"
    | "result-not-kept"
    | "log"
    | "noted";
  readonly attempt: number;
  readonly token: number;
  readonly claimer: string | null;
  readonly text: string | null;
  readonly error: ErrorRecord | null;
}

export interface Diagnosis {
  readonly id: string;
  readonly state: JobState;
  readonly causes: readonly {
    readonly code: string;
    readonly what: string;
    readonly advice: string | null;
    readonly [other: string]: unknown;
  }[];
}

export interface JobResult {
  readonly state: JobState;
  readonly hasEnded: boolean;
  /** Any JSON. */
  readonly result?: unknown;
  readonly error: ErrorRecord | null;
  readonly reason: string | null;
}

export interface Children {
  readonly children: readonly ChildJob[];
  /** Whether not all blocked jobs were searched. */
  readonly isPartial: boolean;
}

export interface ChildJob {
  readonly id: string;
  readonly name: string;
  readonly state: JobState;
  readonly waitsFor: readonly string[];
}

export interface UpdateResult {
  readonly outcome: "updated" | "refused" | "unknown";
  readonly state: JobState | null;
}

export interface JobChanges {
  /** Any JSON. */
  readonly input?: unknown;
  readonly runAt?: string;
  /** Milliseconds, or a number with a unit: 250ms, 30s, 1.5h. */
  readonly delay?: number | string;
  readonly priority?: number;
  /** Kept in the trail and the audit log. */
  readonly reason?: string;
}

export interface Changed {
  readonly outcome: "cancelled" | "requested" | "terminal" | "redriven" | "held" | "refused" | "deleted";
}

export interface Why {
  /** Kept in the trail and the audit log. */
  readonly reason?: string;
}

export interface Task {
  readonly id: string;
  readonly action: "cancel" | "redrive" | "delete" | "run-now" | "priority";
  readonly dryRun: boolean;
  readonly actor: string;
  readonly startedAt: string;
  readonly state: "running" | "done" | "stopped" | "failed";
  readonly looked: number;
  readonly matched: number;
  /** How many no longer matched when the task reached them. */
  readonly changed: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly error: string | null;
}

export interface Bulk {
  readonly filter: Filter;
  /** Only counts, and changes nothing. */
  readonly dryRun?: boolean;
  /** Kept in the trail and the audit log. */
  readonly reason?: string;
}

export interface Filter {
  readonly state?: readonly (
    | "blocked"
    | "waiting"
    | "active"
    | "succeeded"
    | "dead"
    | "lost"
    | "cancelled"
  )[];
  readonly name?: readonly string[];
  readonly queue?: readonly string[];
  readonly tag?: readonly string[];
  readonly delivery?: readonly ("at-most-once" | "at-least-once" | "effectively-once")[];
  readonly schedule?: string;
  /** A time such as 2026-11-15T03:00:00Z, or how long ago: 90m, 2d. */
  readonly since?: string;
  /** A time such as 2026-11-15T03:00:00Z, or how long ago: 90m, 2d. */
  readonly until?: string;
  readonly error?: string;
  readonly text?: string;
  readonly fingerprint?: string;
}

export interface BulkPriority {
  readonly filter: Filter;
  readonly priority: number;
  /** Only counts, and changes nothing. */
  readonly dryRun?: boolean;
  /** Kept in the trail and the audit log. */
  readonly reason?: string;
}

export interface Tasks {
  readonly tasks: readonly Task[];
}

export interface BulkFailures {
  readonly name?: string;
  readonly state?: "dead" | "lost";
  readonly dryRun?: boolean;
  /** Kept in the trail and the audit log. */
  readonly reason?: string;
}

export interface Queues {
  readonly queues: readonly QueueView[];
}

export interface OldestDue {
  readonly id: string | null;
}

export interface QueueConfig {
  readonly queue: string;
  readonly paused: boolean;
  readonly concurrency: number | null;
  readonly rate: Rate | null;
}

export interface Limits {
  readonly concurrency?: number | null;
  readonly rate?: {
    readonly limit: number;
    /** Milliseconds, or a number with a unit: 250ms, 30s, 1.5h. */
    readonly per: number | string;
  } | null;
  /** Kept in the trail and the audit log. */
  readonly reason?: string;
}

export interface Schedules {
  readonly schedules: readonly Schedule[];
}

export interface Schedule {
  readonly key: string;
  readonly spec: ScheduleSpec;
  readonly name: string;
  readonly queue: string;
  readonly input?: unknown;
  readonly priority: number;
  readonly tags: readonly string[];
  readonly expireInMs: number | null;
  readonly attempts: number;
  readonly paused: boolean;
  readonly nextAt: string | null;
  readonly fired: number;
  readonly lastJobId: string | null;
  readonly version: number;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly unreadable?: string;
}

export interface ScheduleSpec {
  readonly cron?: string;
  readonly timezone?: string;
  readonly days?: "or" | "and";
  readonly gap?: "run-after" | "skip";
  readonly repeat?: "first" | "both";
  readonly misfire?: "once" | "skip" | "all";
  readonly catchUp?: number;
  readonly overlap?: "allow" | "skip" | "queue-one" | "replace";
  readonly limit?: number;
  readonly every?: number | string;
  readonly at?: string;
  readonly startAt?: string;
  readonly endAt?: string;
  readonly lookback?: number | string;
  readonly jitter?: number | string;
}

export interface ScheduleOutcome {
  readonly outcome: "added" | "changed" | "unchanged" | "kept";
}

export interface NewSchedule {
  readonly spec: NewScheduleSpec;
  readonly job: string;
  readonly input?: unknown;
  readonly priority?: number;
  readonly tags?: readonly string[];
  /** Milliseconds, or a number with a unit: 250ms, 30s, 1.5h. */
  readonly expireIn?: number | string;
  readonly attempts?: number;
  /** Kept in the trail and the audit log. */
  readonly reason?: string;
}

export interface NewScheduleSpec {
  readonly cron?: string;
  readonly timezone?: string;
  readonly days?: "or" | "and";
  readonly gap?: "run-after" | "skip";
  readonly repeat?: "first" | "both";
  readonly misfire?: "once" | "skip" | "all";
  readonly catchUp?: number;
  readonly overlap?: "allow" | "skip" | "queue-one" | "replace";
  readonly limit?: number;
  /** Milliseconds, or a number with a unit: 250ms, 30s, 1.5h. */
  readonly every?: number | string;
  readonly at?: string;
  readonly startAt?: string;
  readonly endAt?: string;
  /** Milliseconds, or a number with a unit: 250ms, 30s, 1.5h. */
  readonly lookback?: number | string;
  /** Milliseconds, or a number with a unit: 250ms, 30s, 1.5h. */
  readonly jitter?: number | string;
}

export interface NewRule {
  readonly spec: NewScheduleSpec;
  /** Kept in the trail and the audit log. */
  readonly reason?: string;
}

export interface RulePreview {
  /** A cron expression in plain English. */
  readonly text: string | null;
  readonly times: readonly {
    readonly at: string;
    readonly note: string | null;
  }[];
}

export interface AskedRule {
  readonly spec: NewScheduleSpec;
  readonly count?: number;
}

export interface Removed {
  readonly removed: string;
}

export interface Times {
  readonly times: readonly string[];
}

export interface Occurrences {
  readonly occurrences: readonly Occurrence[];
}

export interface Occurrence {
  readonly key: string;
  readonly fireAt: string;
  readonly until: string | null;
  readonly count: number;
  readonly fate:
    | "skipped"
    | "forgotten"
    | "blocked"
    | "waiting"
    | "active"
    | "succeeded"
    | "dead"
    | "lost"
    | "cancelled";
  readonly reason: string | null;
  readonly jobId: string | null;
  readonly attempt: number | null;
  readonly plannedAt: string;
  readonly claimedAt: string | null;
  readonly finishedAt: string | null;
  readonly lateMs: number | null;
  readonly plannedBy: string;
  readonly node: string | null;
}

export interface Backfilled {
  readonly dryRun: boolean;
  /** How many were planned, or would be. */
  readonly count: number;
  /** The first of those that would be planned. */
  readonly times: readonly string[];
}

export interface Span {
  readonly from: string;
  readonly to: string;
  /** Plans nothing, and returns what would be planned. */
  readonly dryRun?: boolean;
  /** Kept in the trail and the audit log. */
  readonly reason?: string;
}

export interface JobProgress {
  readonly id: string;
  readonly state: JobState;
  readonly attempt: number;
  readonly attempts: number;
  /** Any JSON. */
  readonly progress?: unknown;
  readonly reason: string | null;
  readonly error: ErrorRecord | null;
  readonly finishedAt: string | null;
  readonly cancelRequested: boolean;
  readonly trail: readonly TrailLine[];
}

export interface Probe {
  readonly ok: boolean;
  /** Only for a caller with credentials. */
  readonly checks?: readonly {
    readonly name: string;
    readonly ok: boolean;
    readonly detail: string;
  }[];
}
