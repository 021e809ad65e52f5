import { follow } from "../../state.ts";
import {
  type AcquireParams,
  type CheckpointParams,
  type CheckpointResult,
  type DueJob,
  type PartitionDue,
  type PartitionDueParams,
  type PartitionGrant,
  type PartitionHold,
  type PartitionOutcome,
  type PartitionRef,
  type PartitionTable,
  slotCount,
} from "../../store.ts";
import { finishAll } from "./finish.ts";
import { byTime } from "./lines.ts";
import { isExpired, type Row, toClaimed, toDate } from "./row.ts";
import type { Moment, Partition, Space } from "./space.ts";

export function partitions(space: Space, { monotonic }: Moment): PartitionTable {
  return {
    wanted: space.wantedPartitions,
    partitions: space.partitions.map(({ partition, epoch, firstSlot, endSlot, mark, owner, leaseUntil }) => ({
      partition,
      epoch,
      firstSlot,
      endSlot,
      mark: toDate(mark),
      owner: leaseUntil > monotonic ? owner : null,
    })),
  };
}

export function acquirePartitions(space: Space, params: AcquireParams, moment: Moment): PartitionGrant[] {
  space.wantedPartitions = Math.max(space.wantedPartitions, params.partitions);
  const isFree = ({ owner, leaseUntil }: Partition): boolean =>
    owner === null || leaseUntil <= moment.monotonic;
  if (space.partitions.length < space.wantedPartitions) {
    if (!space.partitions.every(isFree)) return [];
    cut(space, space.wantedPartitions);
  }
  return space.partitions
    .filter(isFree)
    .slice(0, params.want)
    .map((partition) => grant(space, partition, params, moment));
}

function cut(space: Space, count: number): void {
  const firstSlot = (partition: number): number => Math.floor((partition * slotCount) / count);
  // No epoch of any partition comes twice, so that whoever held one before the cut is stale after it.
  const epoch = space.partitions.reduce((highest, one) => Math.max(highest, one.epoch), 0);
  space.partitions = Array.from({ length: count }, (_, partition) => ({
    partition,
    firstSlot: firstSlot(partition),
    endSlot: firstSlot(partition + 1),
    owner: null,
    epoch,
    leaseUntil: 0,
    mark: null,
  }));
  space.indexes.cut(count, space.jobs.values());
}

function grant(space: Space, old: Partition, params: AcquireParams, moment: Moment): PartitionGrant {
  const { partition, firstSlot, endSlot, mark } = old;
  const epoch = old.epoch + 1;
  space.partitions[partition] = {
    ...old,
    owner: params.owner,
    epoch,
    leaseUntil: moment.monotonic + params.leaseMs,
  };
  const named = [...space.indexes.named].filter((row) => isIn(row, old)).toSorted(byTime);
  for (const row of named) {
    space.write(row, { claimer: params.owner, claimedAt: moment.now, token: row.token + 1 });
  }
  return { partition, epoch, firstSlot, endSlot, mark: toDate(mark), named: named.map(toClaimed) };
}

export function renewPartitions(
  space: Space,
  params: PartitionHold & { readonly leaseMs: number },
  moment: Moment,
): PartitionOutcome[] {
  return params.held.map((ref) => {
    const partition = ownedBy(space, params.owner, ref);
    if (partition === undefined) return "stale";
    space.partitions[partition.partition] = {
      ...partition,
      leaseUntil: moment.monotonic + params.leaseMs,
    };
    return "renewed";
  });
}

export function releasePartitions(space: Space, params: PartitionHold): void {
  for (const ref of params.held) {
    const partition = ownedBy(space, params.owner, ref);
    if (partition !== undefined) space.partitions[partition.partition] = { ...partition, owner: null };
  }
}

export function partitionDue(space: Space, params: PartitionDueParams, now: number): PartitionDue {
  const jobs: Row[] = [];
  let left: Row | undefined;
  const after = params.after && { runAt: params.after.runAt.getTime(), order: params.after.order };
  for (const row of space.indexes.relayedIn(params.partition).upward(after)) {
    if (isExpired(row, now)) continue;
    if (jobs.length === params.limit || row.runAt > now + params.aheadMs) {
      left = row;
      break;
    }
    jobs.push(row);
  }
  const last = jobs.at(-1);
  return {
    now: new Date(now),
    jobs: jobs.map(toDue),
    last: last === undefined ? null : { runAt: new Date(last.runAt), order: last.order },
    nextAt: toDate(left?.runAt ?? null),
  };
}

function toDue({ id, name, queue, delivery, runAt, token, version }: Row): DueJob {
  return { id, name, queue, delivery, runAt: new Date(runAt), token, version };
}

export function checkpoint(space: Space, params: CheckpointParams, now: number): CheckpointResult {
  const partition = ownedBy(space, params.owner, params);
  if (partition === undefined) return { outcome: "stale", finished: [], named: [] };
  const mine = (row: Row): boolean => row.relayed && isIn(row, partition);
  const finished = finishAll(space, params.owner, params.settled, now, mine);
  if (params.mark !== null) {
    space.partitions[partition.partition] = { ...partition, mark: params.mark.getTime() };
  }
  const named = params.name.flatMap(({ id, version }) => {
    const row = space.jobs.get(id);
    if (row === undefined || !mine(row) || row.version !== version) return [];
    return name(space, row, params, now) ? [toClaimed(row)] : [];
  });
  return { outcome: "written", finished, named };
}

/** Whether the job may be published: just named, or named before by this owner and not settled since. */
function name(space: Space, row: Row, { owner, aheadMs }: CheckpointParams, now: number): boolean {
  if (row.state === "active") return row.claimer === owner;
  if (row.state !== "waiting" || row.runAt > now + aheadMs || isExpired(row, now)) return false;
  space.write(row, {
    state: follow(row.state, "claim"),
    reason: null,
    token: row.token + 1,
    attempt: row.attempt + 1,
    claimer: owner,
    claimedAt: now,
  });
  return true;
}

function ownedBy(space: Space, owner: string, ref: PartitionRef): Partition | undefined {
  const partition = space.partitions[ref.partition];
  return partition?.owner === owner && partition.epoch === ref.epoch ? partition : undefined;
}

function isIn(row: Row, { firstSlot, endSlot }: Partition): boolean {
  return row.slot >= firstSlot && row.slot < endSlot;
}
