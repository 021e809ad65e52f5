import { EscapementError } from "../../errors.ts";
import type { ClaimedJob } from "../../store/claims.ts";
import {
  type AcquireParams,
  type CheckpointParams,
  type CheckpointResult,
  type DueJob,
  longestLeaseMs,
  type PartitionDue,
  type PartitionDueParams,
  type PartitionGrant,
  type PartitionHold,
  type PartitionOutcome,
  type PartitionRecord,
  type PartitionTable,
  slotCount,
} from "../../store/partitions.ts";
import { explainRefusal, finishFrames, readFinished } from "./claim.ts";
import { Reader } from "./connection/wire.ts";
import { readClaimed, readDue } from "./rows.ts";
import { type Session, spread } from "./session.ts";

/** How many partitions each open namespace has, if known. A holder knows: the grant says so, and they are not cut again while it holds one. */
const partitionCounts = new WeakMap<Session, number>();

export async function acquirePartitions(session: Session, params: AcquireParams): Promise<PartitionGrant[]> {
  if (params.partitions % session.slots !== 0) {
    throw new EscapementError(
      "store-unsupported",
      `expected the number of partitions to be a multiple of the ${session.slots} slots that this Redis namespace is spread over, got ${params.partitions}`,
    );
  }
  const asked = await askEverySlot(session, params, null);
  if (!asked.isPending || asked.held > 0) return asked.grants;
  const want = params.want - asked.grants.length;
  const { grants } = await askEverySlot(session, { ...params, want }, asked.epoch);
  return [...asked.grants, ...grants];
}

interface Asked {
  readonly grants: PartitionGrant[];
  /** There should be more partitions than there are. */
  readonly isPending: boolean;
  /** How many of those to be replaced are held. */
  readonly held: number;
  readonly epoch: number;
}

/** Takes what is free in each Redis slot; with an epoch, repartitions where needed. */
async function askEverySlot(
  session: Session,
  params: AcquireParams,
  cutAbove: number | null,
): Promise<Asked> {
  const { owner, leaseMs } = params;
  const grants: PartitionGrant[] = [];
  let { partitions } = params;
  let made: number | null = null;
  let [isPending, held, epoch] = [false, 0, cutAbove ?? 0];
  // The first slot decides how many there are.
  for (const index of session.everySlot) {
    const want = params.want - grants.length;
    const place = { slotCount, index, of: session.slots };
    const json = JSON.stringify({
      owner,
      leaseMs,
      longestLeaseMs,
      partitions,
      made,
      epoch: cutAbove,
      want,
      ...place,
    });
    const reader = new Reader(await session.text("acquire-partitions", index, json));
    const amount = reader.u32();
    partitions = reader.u32();
    made ??= amount;
    if (amount < partitions) {
      isPending = true;
      held += reader.u32();
    } else reader.u32();
    epoch = Math.max(epoch, reader.f64());
    while (!reader.isAtEnd) grants.push(readGrant(reader));
  }
  if (made !== null) partitionCounts.set(session, made);
  return { grants, isPending, held, epoch };
}

export async function partitions(session: Session): Promise<PartitionTable> {
  const records: PartitionRecord[] = [];
  let wanted = 0;
  for (const index of session.everySlot) {
    const reader = new Reader(await session.text("partitions", index, longestLeaseMs));
    const made = reader.u32();
    const asked = reader.u32();
    if (index === 0) {
      wanted = asked;
      if (made > 0) partitionCounts.set(session, made);
    }
    while (!reader.isAtEnd) records.push(readRecord(reader));
  }
  return { wanted, partitions: records.toSorted((a, b) => a.partition - b.partition) };
}

function readRecord(reader: Reader): PartitionRecord {
  const partition = reader.u32();
  const epoch = reader.f64();
  const [firstSlot, endSlot] = [reader.u16(), reader.u16()];
  const mark = reader.date();
  const owner = reader.short();
  return { partition, epoch, firstSlot, endSlot, mark, owner: owner === "" ? null : owner };
}

function readGrant(reader: Reader): PartitionGrant {
  const partition = reader.u32();
  const epoch = reader.f64();
  const [firstSlot, endSlot] = [reader.u16(), reader.u16()];
  const mark = reader.date();
  const named = Array.from({ length: reader.u32() }, () => readClaimed(reader)).flat();
  return { partition, epoch, firstSlot, endSlot, mark, named };
}

/** The Redis slot of a partition. */
async function placeOf(session: Session, partition: number): Promise<number> {
  if (session.slots === 1) return 0;
  const known = partitionCounts.get(session);
  if (known !== undefined)
    return Math.min(Math.floor((partition * session.slots) / known), session.slots - 1);
  const made = Number(await session.meta("partitions"));
  if (made === 0) return 0;
  partitionCounts.set(session, made);
  return placeOf(session, partition);
}

export async function renewPartitions(
  session: Session,
  { owner, held, leaseMs }: PartitionHold & { readonly leaseMs: number | "" },
): Promise<PartitionOutcome[]> {
  const refs = await Promise.all(
    held.map(async (ref) => ({ ...ref, place: await placeOf(session, ref.partition) })),
  );
  return spread(
    session,
    refs,
    ({ place }) => place,
    async (part, index) => {
      const json = JSON.stringify(part.map(({ partition, epoch }) => [partition, epoch]));
      const marks = await session.text("renew-partitions", index, owner, leaseMs, json);
      return Array.from(marks, (mark) => (mark === 1 ? "renewed" : "stale"));
    },
  );
}

export async function releasePartitions(session: Session, hold: PartitionHold): Promise<void> {
  await renewPartitions(session, { ...hold, leaseMs: "" });
}

export async function partitionDue(session: Session, params: PartitionDueParams): Promise<PartitionDue> {
  const { partition, aheadMs, limit, after } = params;
  const place = await placeOf(session, partition);
  const behind = after === null ? ["", ""] : [after.runAt.getTime(), after.order];
  const reader = new Reader(await session.text("partition-due", place, partition, aheadMs, limit, ...behind));
  const now = new Date(reader.f64());
  const nextAt = reader.date();
  const lastAt = reader.date();
  const order = reader.f64();
  const last = lastAt === null ? null : { runAt: lastAt, order };
  const jobs: DueJob[] = [];
  while (!reader.isAtEnd) {
    const job = readDue(reader);
    if (job !== null) jobs.push(job);
  }
  return { now, jobs, last, nextAt };
}

export async function checkpoint(session: Session, params: CheckpointParams): Promise<CheckpointResult> {
  const { owner, partition, epoch, settled, mark, name, aheadMs } = params;
  const answer = await session
    .text(
      "checkpoint",
      await placeOf(session, partition),
      owner,
      partition,
      epoch,
      mark === null ? "" : mark.getTime(),
      settled.length,
      finishFrames(settled),
      JSON.stringify(name.map(({ id, version }) => [id, version])),
      aheadMs,
    )
    .catch(explainRefusal);
  if (answer.length === 0) return { outcome: "stale", finished: [], named: [] };
  const reader = new Reader(answer.subarray(1));
  const finished = readFinished(reader, settled.length);
  const named: ClaimedJob[] = [];
  while (!reader.isAtEnd) named.push(...readClaimed(reader));
  return { outcome: "written", finished, named };
}
