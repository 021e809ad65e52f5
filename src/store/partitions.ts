import type { JobOutline } from "../job.ts";
import { maxCount } from "../state.ts";
import type { ClaimedJob, Finish, FinishResult } from "./claims.ts";

/** Partitions: how the relay owns waiting jobs and publishes them, without a lease per job. */
export interface PartitionVerbs {
  /** How the namespace is divided into partitions, and who holds them. */
  partitions(): Promise<PartitionTable>;

  /**
   * Takes partitions that are free or whose lease has expired. Jobs that an earlier owner had named there are taken
   * over: claimer and claimedAt change and their token rises; attempt and crashes do not. Named jobs have no lease of
   * their own, and `reap` leaves them alone.
   */
  acquirePartitions(params: AcquireParams): Promise<PartitionGrant[]>;

  /** Renews the leases of partitions. `stale`: another grant has been made since. */
  renewPartitions(params: PartitionHold & { readonly leaseMs: number }): Promise<PartitionOutcome[]>;

  /** Gives partitions back. Those that are no longer the owner's are skipped. */
  releasePartitions(params: PartitionHold): Promise<void>;

  /** What a partition will fire: waiting relayed jobs due within `aheadMs`, by runAt. Changes nothing. */
  partitionDue(params: PartitionDueParams): Promise<PartitionDue>;

  /**
   * Settles jobs of the named batch, moves the mark and names the next batch, in one write fenced by the epoch. Only
   * named jobs may be published; their token has risen and they are active.
   */
  checkpoint(params: CheckpointParams): Promise<CheckpointResult>;
}

/** How many slots a namespace has. It never changes, so a job's slot never changes. */
export const slotCount = 1024;

/**
 * The first slot of a partition, out of that many. Stores compute it at each grant, since a row that stores it may be
 * damaged.
 */
export function firstSlotOf(partition: number, partitions: number): number {
  return Math.floor((partition * slotCount) / partitions);
}

/**
 * The epoch of the next grant. One that cannot rise is damaged, and counts from 1 again: writes are fenced by owner and
 * epoch together.
 */
export function nextEpoch(epoch: number): number {
  return epoch < maxCount ? epoch + 1 : 1;
}

/**
 * No lease is longer. A partition whose lease seems to be is damaged and counts as free; otherwise its jobs would wait
 * for years.
 */
export const longestLeaseMs = 86_400_000;

export interface AcquireParams {
  readonly owner: string;
  /** At most {@link longestLeaseMs}. */
  readonly leaseMs: number;
  /**
   * The minimum number of partitions. The first acquire makes them, partition i from slot floor(i * slotCount /
   * partitions). If it is more than any acquire has asked for before, nothing is granted until every partition is free
   * or its lease has expired; the acquire that finds them so divides the namespace again, without marks, each partition
   * under the highest epoch so far. Fewer changes nothing.
   */
  readonly partitions: number;
  /** How many more to take, of those that are free or whose lease has expired. */
  readonly want: number;
}

/** A partition is slots [firstSlot, endSlot). The epoch rises with each grant. */
export interface PartitionGrant {
  readonly partition: number;
  readonly epoch: number;
  readonly firstSlot: number;
  readonly endSlot: number;
  /** How far firing has got: a progress figure, never a filter. */
  readonly mark: Date | null;
  /** Named by an earlier owner and not settled: to be published again. They are now under this epoch. */
  readonly named: readonly ClaimedJob[];
}

export interface PartitionTable {
  /**
   * The most partitions ever asked for, 0 if none yet; more than there are while holders still have to give theirs
   * back.
   */
  readonly wanted: number;
  /** By number; none before the first acquire. */
  readonly partitions: readonly PartitionRecord[];
}

export interface PartitionRecord extends PartitionRef {
  readonly firstSlot: number;
  readonly endSlot: number;
  readonly mark: Date | null;
  /** Who holds it; null when it is free or its lease has expired. */
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

/**
 * A job's place among the waiting jobs of its partition: by runAt, then in the order of enqueueing, which counts from
 * 1.
 */
export interface DuePlace {
  readonly runAt: Date;
  readonly order: number;
}

export interface PartitionDueParams {
  readonly partition: number;
  readonly aheadMs: number;
  readonly limit: number;
  /** Only what comes after this place, so jobs that cannot be fired now hide no others; null: from the first. */
  readonly after: DuePlace | null;
}

/**
 * A job to be named. The rest of it comes with the naming, so an input is read once and held no longer than it has to
 * be.
 */
export interface DueJob extends JobOutline {
  readonly version: number;
}

export interface PartitionDue {
  readonly now: Date;
  readonly jobs: readonly DueJob[];
  /** The place of the last of the jobs; null when there is none. */
  readonly last: DuePlace | null;
  /** The earliest runAt after the last that was left out. */
  readonly nextAt: Date | null;
}

export interface CheckpointParams {
  readonly owner: string;
  readonly partition: number;
  readonly epoch: number;
  readonly settled: readonly Finish[];
  /** Null leaves it as it is. */
  readonly mark: Date | null;
  /**
   * To be named. Those no longer waiting, due within `aheadMs`, unexpired, of this version and in this partition are
   * left out. One that this epoch already named and has not settled is returned again unchanged, so a lost reply
   * strands nothing.
   */
  readonly name: readonly { readonly id: string; readonly version: number }[];
  /** How long before its time a job may be named. Its owner, even after a takeover, keeps it until its time. */
  readonly aheadMs: number;
}

export interface CheckpointResult {
  readonly outcome: "written" | "stale";
  readonly finished: readonly FinishResult[];
  /** Only these may be published. */
  readonly named: readonly ClaimedJob[];
}
