import { follow } from "../../state.ts";
import {
  type AcquireParams,
  type CheckpointParams,
  type CheckpointResult,
  type DueJob,
  firstSlotOf,
  type PartitionDue,
  type PartitionDueParams,
  type PartitionGrant,
  type PartitionHold,
  type PartitionOutcome,
  type PartitionRef,
  type PartitionTable,
} from "../../store/partitions.ts";
import type { Data, Partition } from "./data/data.ts";
import { byTime } from "./data/lines.ts";
import { finishAll } from "./finish.ts";
import { isExpired, type Row, toClaimed, toDate } from "./rows.ts";
import type { Moment, Session } from "./session.ts";

export function partitions({ data, monotonic }: Session): PartitionTable {
  return {
    wanted: data.wantedPartitions,
    partitions: data.partitions.map(({ partition, epoch, firstSlot, endSlot, mark, owner, leaseUntil }) => ({
      partition,
      epoch,
      firstSlot,
      endSlot,
      mark: toDate(mark),
      owner: leaseUntil > monotonic ? owner : null,
    })),
  };
}

export function acquirePartitions(session: Session, params: AcquireParams): PartitionGrant[] {
  const { data } = session;
  data.wantedPartitions = Math.max(data.wantedPartitions, params.partitions);
  const isFree = ({ owner, leaseUntil }: Partition): boolean =>
    owner === null || leaseUntil <= session.monotonic;
  if (data.partitions.length < data.wantedPartitions) {
    if (!data.partitions.every(isFree)) return [];
    cut(data, data.wantedPartitions);
  }
  return data.partitions
    .filter(isFree)
    .slice(0, params.want)
    .map((partition) => grant(data, partition, params, session));
}

function cut(data: Data, count: number): void {
  // No epoch of any partition is used twice, so a holder from before the cut is stale after it.
  const epoch = data.partitions.reduce((highest, one) => Math.max(highest, one.epoch), 0);
  data.partitions = Array.from({ length: count }, (_, partition) => ({
    partition,
    firstSlot: firstSlotOf(partition, count),
    endSlot: firstSlotOf(partition + 1, count),
    owner: null,
    epoch,
    leaseUntil: 0,
    mark: null,
  }));
  data.indexes.cut(count, data.jobs.values());
}

function grant(data: Data, old: Partition, params: AcquireParams, moment: Moment): PartitionGrant {
  const { partition, firstSlot, endSlot, mark } = old;
  const epoch = old.epoch + 1;
  data.partitions[partition] = {
    ...old,
    owner: params.owner,
    epoch,
    leaseUntil: moment.monotonic + params.leaseMs,
  };
  const named = [...data.indexes.named].filter((row) => isIn(row, old)).toSorted(byTime);
  for (const row of named) {
    data.write(row, { claimer: params.owner, claimedAt: moment.now, token: row.token + 1 });
  }
  return { partition, epoch, firstSlot, endSlot, mark: toDate(mark), named: named.map(toClaimed) };
}

export function renewPartitions(
  session: Session,
  params: PartitionHold & { readonly leaseMs: number },
): PartitionOutcome[] {
  const { data } = session;
  return params.held.map((ref) => {
    const partition = ownedBy(data, params.owner, ref);
    if (partition === undefined) return "stale";
    data.partitions[partition.partition] = {
      ...partition,
      leaseUntil: session.monotonic + params.leaseMs,
    };
    return "renewed";
  });
}

export function releasePartitions({ data }: Session, params: PartitionHold): void {
  for (const ref of params.held) {
    const partition = ownedBy(data, params.owner, ref);
    if (partition !== undefined) data.partitions[partition.partition] = { ...partition, owner: null };
  }
}

export function partitionDue({ data, now }: Session, params: PartitionDueParams): PartitionDue {
  const jobs: Row[] = [];
  let left: Row | undefined;
  const after = params.after && { runAt: params.after.runAt.getTime(), order: params.after.order };
  for (const row of data.indexes.relayedIn(params.partition).upward(after)) {
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

export function checkpoint({ data, now }: Session, params: CheckpointParams): CheckpointResult {
  const partition = ownedBy(data, params.owner, params);
  if (partition === undefined) return { outcome: "stale", finished: [], named: [] };
  const mine = (row: Row): boolean => row.relayed && isIn(row, partition);
  const finished = finishAll(data, params.owner, params.settled, now, mine);
  if (params.mark !== null) {
    data.partitions[partition.partition] = { ...partition, mark: params.mark.getTime() };
  }
  const named = params.name.flatMap(({ id, version }) => {
    const row = data.jobs.get(id);
    if (row === undefined || !mine(row) || row.version !== version) return [];
    return name(data, row, params, now) ? [toClaimed(row)] : [];
  });
  return { outcome: "written", finished, named };
}

/** Whether the job may be published: just named, or named before by this owner and not settled since. */
function name(data: Data, row: Row, { owner, aheadMs }: CheckpointParams, now: number): boolean {
  if (row.state === "active") return row.claimer === owner;
  if (row.state !== "waiting" || row.runAt > now + aheadMs || isExpired(row, now)) return false;
  data.write(row, {
    state: follow(row.state, "claim"),
    reason: null,
    token: row.token + 1,
    attempt: row.attempt + 1,
    claimer: owner,
    claimedAt: now,
  });
  return true;
}

function ownedBy(data: Data, owner: string, ref: PartitionRef): Partition | undefined {
  const partition = data.partitions[ref.partition];
  return partition?.owner === owner && partition.epoch === ref.epoch ? partition : undefined;
}

function isIn(row: Row, { firstSlot, endSlot }: Partition): boolean {
  return row.slot >= firstSlot && row.slot < endSlot;
}
