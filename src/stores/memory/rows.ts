import type { Delivery, JobFacts, JobState } from "../../job.ts";
import { ownRetentionMs } from "../../retention.ts";
import { type AfterFailure, isTerminal } from "../../state.ts";
import type { ClaimedJob } from "../../store/claims.ts";
import type { Retention, StoredJob } from "../../store/jobs.ts";
import type { TrailEntry } from "../../store/questions.ts";

/**
 * A job as this store holds it; instants are numbers. Only {@link Data.write} changes a row, since the
 * indexes depend on its fields.
 */
export interface Row {
  /** Its place in enqueue order. */
  readonly order: number;
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly delivery: Delivery;
  readonly input: string;
  readonly priority: number;
  readonly tags: readonly string[];
  readonly runAt: number;
  readonly fireAt: number;
  readonly enqueuedAt: number;
  readonly expireAt: number | null;
  readonly attempt: number;
  readonly attempts: number;
  readonly crashes: number;
  readonly maxCrashes: number;
  readonly redrives: number;
  readonly rollbacks: number;
  readonly token: number;
  readonly version: number;
  readonly schedule: string | null;
  readonly state: JobState;
  readonly reason: string | null;
  readonly result: string | null;
  readonly error: string | null;
  readonly progress: string | null;
  readonly claimer: string | null;
  readonly claimedAt: number | null;
  readonly finishedAt: number | null;
  readonly cancelRequested: boolean;
  readonly afterFailure: AfterFailure;
  /** `until` null: for as long as it is not terminal. */
  readonly unique: { readonly key: string; readonly until: number | null } | null;
  readonly debounceKey: string | null;
  readonly concurrencyKey: string | null;
  readonly rateKey: string | null;
  readonly retention: Retention | null;
  readonly relayed: boolean;
  readonly slot: number;
  /** Claimed ahead, and not known to have started; see `ClaimParams.ahead`. */
  readonly ahead: boolean;
  /** On the monotonic clock; null if there is no claim, or one of the relay's. */
  readonly leaseUntil: number | null;
  /** The last claim that its holder finished, to recognise a repeated finish. */
  readonly finished: { readonly token: number; readonly claimer: string } | null;
  readonly waitsFor: ReadonlySet<string>;
  /** The jobs that it blocks. */
  readonly children: Set<string>;
  readonly aliases: string[];
  readonly trail: TrailEntry[];
}

/** Not started in time: it is never claimed any more, and the next reap ends it. */
export function isExpired(row: Row, now: number): boolean {
  return mayExpire(row) && row.expireAt !== null && row.expireAt <= now;
}

export function mayExpire(row: Row): boolean {
  return (row.state === "waiting" || row.state === "blocked") && row.attempt === 0;
}

export function holdsUniqueKey(row: Row, now: number): boolean {
  if (row.unique === null) return false;
  return row.unique.until === null ? !isTerminal(row.state) : row.unique.until > now;
}

/** When an ended job is forgotten by its own retention; null if `prune` decides. */
export function forgetAt(row: Row): number | null {
  const keptMs = ownRetentionMs(row.retention, row.state);
  return keptMs === null ? null : (row.finishedAt ?? 0) + keptMs;
}

function factsOf(row: Row): JobFacts {
  return {
    id: row.id,
    name: row.name,
    queue: row.queue,
    delivery: row.delivery,
    priority: row.priority,
    tags: [...row.tags],
    runAt: new Date(row.runAt),
    fireAt: new Date(row.fireAt),
    enqueuedAt: new Date(row.enqueuedAt),
    attempt: row.attempt,
    attempts: row.attempts,
    crashes: row.crashes,
    maxCrashes: row.maxCrashes,
    redrives: row.redrives,
    token: row.token,
    schedule: row.schedule,
  };
}

export function toClaimed(row: Row): ClaimedJob {
  return { ...factsOf(row), input: row.input, cancelRequested: row.cancelRequested };
}

export function toStored(row: Row): StoredJob {
  return {
    ...factsOf(row),
    state: row.state,
    reason: row.reason,
    input: row.input,
    result: row.result,
    error: row.error,
    progress: row.progress,
    expireAt: toDate(row.expireAt),
    rollbacks: row.rollbacks,
    version: row.version,
    claimer: row.claimer,
    claimedAt: toDate(row.claimedAt),
    finishedAt: toDate(row.finishedAt),
    cancelRequested: row.cancelRequested,
    waitsFor: [...row.waitsFor],
    concurrencyKey: row.concurrencyKey,
    rateKey: row.rateKey,
    relayed: row.relayed,
    slot: row.slot,
  };
}

export function toDate(instant: number | null): Date | null {
  return instant === null ? null : new Date(instant);
}
