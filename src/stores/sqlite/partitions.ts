import type { ClaimedJob } from "../../store/claims.ts";
import {
  type AcquireParams,
  type CheckpointParams,
  type CheckpointResult,
  firstSlotOf,
  nextEpoch,
  type PartitionGrant,
  type PartitionHold,
  type PartitionOutcome,
  type PartitionRef,
} from "../../store/partitions.ts";
import { risen } from "../risen.ts";
import type { Row, Tuple } from "./connection/connection.ts";
import { finishAll } from "./finish.ts";
import { cutPartitions, isHeld, leaseBounds } from "./partition/table.ts";
import { claimedColumns, dateOrNull, numberOf, seqOf, toClaimedJob } from "./rows.ts";
import type { Session } from "./session.ts";

export interface Slots {
  readonly firstSlot: number;
  readonly endSlot: number;
}

export function acquirePartitions(session: Session, params: AcquireParams): PartitionGrant[] {
  const { connection, ns } = session;
  const count = cutPartitions(session, params.partitions);
  if (count === null) return [];
  const free = connection.all(
    `select partition, epoch, mark from escapement_partitions
     where ns = ? and partition >= 0 and partition < ? and not ${isHeld} order by partition limit +?`,
    ns,
    count,
    ...leaseBounds(session),
    Math.max(0, params.want),
  );
  return free.map((row) => grant(session, row, count, params));
}

function grant(session: Session, row: Row, count: number, params: AcquireParams): PartitionGrant {
  const { connection, ns, boot, monotonic, now } = session;
  const partition = numberOf(row["partition"]);
  const epoch = nextEpoch(numberOf(row["epoch"]));
  // Computed and written back, since the row may be damaged.
  const slots = { firstSlot: firstSlotOf(partition, count), endSlot: firstSlotOf(partition + 1, count) };
  connection.run(
    `update escapement_partitions set first_slot = ?, end_slot = ?, owner = ?, epoch = ?, lease_boot = ?, lease_until = ?
     where ns = ? and partition = ?`,
    slots.firstSlot,
    slots.endSlot,
    params.owner,
    epoch,
    boot,
    Math.ceil(monotonic + params.leaseMs),
    ns,
    partition,
  );
  const within = "ns = ? and relayed = 1 and slot >= ? and slot < ?";
  const range = [ns, slots.firstSlot, slots.endSlot];
  connection.run(
    `update escapement_active set claimer = ?, claimed_at = ?, token = ${risen("min", "token")} where ${within}`,
    params.owner,
    now,
    ...range,
  );
  const named = connection.tuples(
    `select ${claimedColumns} from escapement_all_jobs
     where seq in (select seq from escapement_active indexed by escapement_active_named where ${within})`,
    ...range,
  );
  return {
    partition,
    epoch,
    ...slots,
    mark: dateOrNull(row["mark"]),
    named: named.sort(byTime).map(toClaimedJob),
  };
}

/** By run_at, then seq, from {@link claimedColumns}. */
function byTime(a: Tuple, b: Tuple): number {
  return numberOf(a[7]) - numberOf(b[7]) || seqOf(a) - seqOf(b);
}

export function renewPartitions(
  { connection, ns, boot, monotonic }: Session,
  params: PartitionHold & { readonly leaseMs: number },
): PartitionOutcome[] {
  return params.held.map(({ partition, epoch }) => {
    const renewed = connection.run(
      `update escapement_partitions set lease_boot = ?, lease_until = ?
       where ns = ? and partition = ? and epoch = ? and owner = ?`,
      boot,
      Math.ceil(monotonic + params.leaseMs),
      ns,
      partition,
      epoch,
      params.owner,
    );
    return renewed > 0 ? "renewed" : "stale";
  });
}

export function releasePartitions({ connection, ns }: Session, params: PartitionHold): void {
  for (const { partition, epoch } of params.held) {
    connection.run(
      "update escapement_partitions set owner = null where ns = ? and partition = ? and epoch = ? and owner = ?",
      ns,
      partition,
      epoch,
      params.owner,
    );
  }
}

export function checkpoint(session: Session, params: CheckpointParams): CheckpointResult {
  const { connection, ns } = session;
  const slots = ownedSlots(session, params.owner, params);
  if (slots === null) return { outcome: "stale", finished: [], named: [] };
  const finished = finishAll(
    session,
    params.owner,
    params.settled,
    (job) => job.relayed && job.slot >= slots.firstSlot && job.slot < slots.endSlot,
  );
  if (params.mark !== null) {
    connection.run(
      "update escapement_partitions set mark = ? where ns = ? and partition = ?",
      params.mark.getTime(),
      ns,
      params.partition,
    );
  }
  return { outcome: "written", finished, named: nameAll(session, slots, params) };
}

/** From a JSON list of [id, version]: those to be named, and those that this owner named before and did not settle; in the order given. */
const nameable = `select job.seq, active.seq is null from (select value as wanted from json_each(?))
  cross join escapement_jobs as job on job.ns = ? and job.id = wanted ->> 0
  left join escapement_active as active on active.seq = job.seq
  where version = wanted ->> 1 and job.relayed = 1 and job.slot >= ? and job.slot < ?
    and case when active.seq is not null then active.claimer = ?
      else shelf is 'relay' and run_at <= ? and (expire_at is null or expire_at > ? or job.attempt > 0) end`;

const chosen = "seq in (select value from json_each(?))";
const nameJobs = `insert into escapement_active (
    seq, ns, queue, name, attempt, token, claimer, claimed_at, relayed, slot, concurrency_key, retention
  ) select seq, ns, queue, name, ${risen("min", "attempt")}, ${risen("min", "token")}, ?, ?, relayed, slot, concurrency_key, retention
  from escapement_jobs where ${chosen}`;
const unshelve = `update escapement_jobs set shelf = null where ${chosen}`;
const dropUntried = `delete from escapement_untried where ${chosen}`;
const readNamed = `select ${claimedColumns} from escapement_all_jobs where ${chosen}`;

/** The jobs that may be published: just named, or named before by this owner and not settled since. */
function nameAll(
  { connection, ns, now }: Session,
  { firstSlot, endSlot }: Slots,
  { owner, name, aheadMs }: CheckpointParams,
): ClaimedJob[] {
  if (name.length === 0) return [];
  const wanted = JSON.stringify(name.map(({ id, version }) => [id, version]));
  const found = connection.tuples(nameable, wanted, ns, firstSlot, endSlot, owner, now + aheadMs, now);
  const fresh = JSON.stringify(found.flatMap(([seq, isWaiting]) => (isWaiting === 1 ? numberOf(seq) : [])));
  connection.run(nameJobs, owner, now, fresh);
  connection.run(unshelve, fresh);
  connection.run(dropUntried, fresh);
  const rows = connection.tuples(readNamed, JSON.stringify(found.map(([seq]) => numberOf(seq))));
  const jobs = new Map(rows.map((row) => [seqOf(row), toClaimedJob(row)]));
  return found.flatMap(([seq]) => jobs.get(numberOf(seq)) ?? []);
}

function ownedSlots({ connection, ns }: Session, owner: string, ref: PartitionRef): Slots | null {
  const row = connection.get(
    `select first_slot, end_slot from escapement_partitions
     where ns = ? and partition = ? and epoch = ? and owner = ?`,
    ns,
    ref.partition,
    ref.epoch,
    owner,
  );
  return row === undefined ? null : slotsOf(row);
}

export function slotsOf(row: Row): Slots {
  return { firstSlot: numberOf(row["first_slot"]), endSlot: numberOf(row["end_slot"]) };
}
