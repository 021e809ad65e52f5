import { follow } from "../../state.ts";
import type {
  AcquireParams,
  CheckpointParams,
  CheckpointResult,
  ClaimedJob,
  PartitionGrant,
  PartitionHold,
  PartitionOutcome,
  PartitionRef,
} from "../../store.ts";
import type { Row, Tuple } from "./connection.ts";
import { finishAll } from "./finish.ts";
import { newHolder } from "./jobs.ts";
import { cutPartitions } from "./partition-table.ts";
import { claimedColumns, dateOrNull, numberOf, seqOf, toClaimedJob } from "./rows.ts";
import type { Session } from "./session.ts";

export interface Slots {
  readonly firstSlot: number;
  readonly endSlot: number;
}

export function acquirePartitions(session: Session, params: AcquireParams): PartitionGrant[] {
  const { connection, ns, boot, monotonic } = session;
  if (!cutPartitions(session, params.partitions)) return [];
  const free = connection.all(
    `select partition, first_slot, end_slot, epoch, mark from escapement_partitions
     where ns = ? and (owner is null or lease_boot <> ? or lease_until <= ?) order by partition limit +?`,
    ns,
    boot,
    monotonic,
    Math.max(0, params.want),
  );
  return free.map((row) => grant(session, row, params));
}

function grant(session: Session, row: Row, params: AcquireParams): PartitionGrant {
  const { connection, ns, boot, monotonic, now } = session;
  const partition = numberOf(row["partition"]);
  const epoch = numberOf(row["epoch"]) + 1;
  const slots = slotsOf(row);
  connection.run(
    `update escapement_partitions set owner = ?, epoch = ?, lease_boot = ?, lease_until = ?
     where ns = ? and partition = ?`,
    params.owner,
    epoch,
    boot,
    Math.ceil(monotonic + params.leaseMs),
    ns,
    partition,
  );
  const named = connection.tuples(
    `update escapement_jobs set ${newHolder}, claimed_at = ?, token = token + 1
     where ns = ? and state = 'active' and relayed = 1 and slot >= ? and slot < ? returning ${claimedColumns}`,
    params.owner,
    now,
    ns,
    slots.firstSlot,
    slots.endSlot,
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

/** Of a JSON list of [id, version]: those to be named, and those that this owner named before and did not settle; in the order asked. */
const nameable = `select seq, state = 'waiting' from (select value as wanted from json_each(?))
  cross join escapement_jobs on ns = ? and id = wanted ->> 0
  where version = wanted ->> 1 and relayed = 1 and slot >= ? and slot < ?
    and case state when 'waiting' then run_at <= ? and (expire_at is null or expire_at > ? or attempt > 0)
      when 'active' then claimer = ? else false end`;

const nameJobs = `update escapement_jobs set
    state = ?, shelf = null, reason = null, attempt = attempt + 1, token = token + 1, ${newHolder}, claimed_at = ?
  where seq in (select value from json_each(?)) returning ${claimedColumns}`;

const namedBefore = `select ${claimedColumns} from escapement_jobs where seq in (select value from json_each(?))`;

/** The jobs that may be published: just named, or named before by this owner and not settled since. */
function nameAll(
  { connection, ns, now }: Session,
  { firstSlot, endSlot }: Slots,
  { owner, name, aheadMs }: CheckpointParams,
): ClaimedJob[] {
  if (name.length === 0) return [];
  const wanted = JSON.stringify(name.map(({ id, version }) => [id, version]));
  const found = connection.tuples(nameable, wanted, ns, firstSlot, endSlot, now + aheadMs, now, owner);
  const seqs = (waiting: number): string =>
    JSON.stringify(found.flatMap(([seq, isWaiting]) => (isWaiting === waiting ? numberOf(seq) : [])));
  const rows = connection.tuples(nameJobs, follow("waiting", "claim"), owner, now, seqs(1));
  if (rows.length < found.length) rows.push(...connection.tuples(namedBefore, seqs(0)));
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
