import { EscapementError } from "../../errors.ts";
import {
  type AcquireParams,
  type CheckpointParams,
  type CheckpointResult,
  type ClaimedJob,
  type DueJob,
  type PartitionDue,
  type PartitionDueParams,
  type PartitionGrant,
  type PartitionHold,
  type PartitionOutcome,
  type PartitionRecord,
  type PartitionTable,
  slotCount,
} from "../../store.ts";
import { explainRefusal, finishFrames, readFinished } from "./claims.ts";
import { readClaimed, readDue } from "./record.ts";
import { type Space, spread } from "./space.ts";
import { Reader } from "./wire.ts";

/** How many partitions each open namespace has, as far as is known. A holder knows it: it is told with the grant, and while it holds one they are not cut anew. */
const partitionCounts = new WeakMap<Space, number>();

export async function acquirePartitions(space: Space, params: AcquireParams): Promise<PartitionGrant[]> {
  if (params.partitions % space.slots !== 0) {
    throw new EscapementError(
      "store-unsupported",
      `expected the number of partitions to be a multiple of the ${space.slots} slots that this Redis namespace is spread over, got ${params.partitions}`,
    );
  }
  const asked = await askEverySlot(space, params, null);
  if (!asked.isPending || asked.held > 0) return asked.grants;
  const want = params.want - asked.grants.length;
  const { grants } = await askEverySlot(space, { ...params, want }, asked.epoch);
  return [...asked.grants, ...grants];
}

interface Asked {
  readonly grants: PartitionGrant[];
  /** There shall be more partitions than there are. */
  readonly isPending: boolean;
  /** How many of those that have to go are held. */
  readonly held: number;
  readonly epoch: number;
}

/** Takes what is free in each Redis slot; with an epoch, cuts each anew that has to be. */
async function askEverySlot(space: Space, params: AcquireParams, cutAbove: number | null): Promise<Asked> {
  const { owner, leaseMs } = params;
  const grants: PartitionGrant[] = [];
  let { partitions } = params;
  let made: number | null = null;
  let [isPending, held, epoch] = [false, 0, cutAbove ?? 0];
  // The first slot decides how many there are.
  for (const index of space.everySlot) {
    const want = params.want - grants.length;
    const place = { slotCount, index, of: space.slots };
    const json = JSON.stringify({ owner, leaseMs, partitions, made, epoch: cutAbove, want, ...place });
    const reader = new Reader(await space.text("acquire-partitions", index, json));
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
  if (made !== null) partitionCounts.set(space, made);
  return { grants, isPending, held, epoch };
}

export async function partitions(space: Space): Promise<PartitionTable> {
  const records: PartitionRecord[] = [];
  let wanted = 0;
  for (const index of space.everySlot) {
    const reader = new Reader(await space.text("partitions", index));
    const made = reader.u32();
    const asked = reader.u32();
    if (index === 0) {
      wanted = asked;
      if (made > 0) partitionCounts.set(space, made);
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
  const named = Array.from({ length: reader.u32() }, () => readClaimed(reader));
  return { partition, epoch, firstSlot, endSlot, mark, named };
}

/** The Redis slot that a partition lies in. */
async function placeOf(space: Space, partition: number): Promise<number> {
  if (space.slots === 1) return 0;
  const known = partitionCounts.get(space);
  if (known !== undefined) return Math.min(Math.floor((partition * space.slots) / known), space.slots - 1);
  const made = Number(await space.meta("partitions"));
  if (made === 0) return 0;
  partitionCounts.set(space, made);
  return placeOf(space, partition);
}

export async function renewPartitions(
  space: Space,
  { owner, held, leaseMs }: PartitionHold & { readonly leaseMs: number | "" },
): Promise<PartitionOutcome[]> {
  const refs = await Promise.all(
    held.map(async (ref) => ({ ...ref, place: await placeOf(space, ref.partition) })),
  );
  return spread(
    space,
    refs,
    ({ place }) => place,
    async (part, index) => {
      const json = JSON.stringify(part.map(({ partition, epoch }) => [partition, epoch]));
      const marks = await space.text("renew-partitions", index, owner, leaseMs, json);
      return Array.from(marks, (mark) => (mark === 1 ? "renewed" : "stale"));
    },
  );
}

export async function releasePartitions(space: Space, hold: PartitionHold): Promise<void> {
  await renewPartitions(space, { ...hold, leaseMs: "" });
}

export async function partitionDue(space: Space, params: PartitionDueParams): Promise<PartitionDue> {
  const { partition, aheadMs, limit, after } = params;
  const place = await placeOf(space, partition);
  const behind = after === null ? ["", ""] : [after.runAt.getTime(), after.order];
  const reader = new Reader(await space.text("partition-due", place, partition, aheadMs, limit, ...behind));
  const now = new Date(reader.f64());
  const nextAt = reader.date();
  const lastAt = reader.date();
  const order = reader.f64();
  const last = lastAt === null ? null : { runAt: lastAt, order };
  const jobs: DueJob[] = [];
  while (!reader.isAtEnd) jobs.push(readDue(reader));
  return { now, jobs, last, nextAt };
}

export async function checkpoint(space: Space, params: CheckpointParams): Promise<CheckpointResult> {
  const { owner, partition, epoch, settled, mark, name, aheadMs } = params;
  const answer = await space
    .text(
      "checkpoint",
      await placeOf(space, partition),
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
  while (!reader.isAtEnd) named.push(readClaimed(reader));
  return { outcome: "written", finished, named };
}
