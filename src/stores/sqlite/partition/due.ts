import type { DueJob, DuePlace, PartitionDue, PartitionDueParams } from "../../../store/partitions.ts";
import { instantOf } from "../../../unreadable.ts";
import type { Tuple } from "../connection/connection.ts";
import { type Slots, slotsOf } from "../partitions.ts";
import { dateOf, deliveryOf, numberOf, textOf } from "../rows.ts";
import type { Session } from "../session.ts";

/** A row of {@link dueColumns}. */
interface Found {
  readonly seq: number;
  readonly runAt: number;
  readonly row: Tuple;
}

const dueColumns = "seq, run_at, id, name, queue, delivery, token, version";

function toDueJob({ row }: Found): DueJob {
  return {
    id: textOf(row[2]),
    name: textOf(row[3]),
    queue: textOf(row[4]),
    delivery: deliveryOf(row[5]),
    runAt: dateOf(row[1]),
    token: numberOf(row[6]),
    version: numberOf(row[7]),
  };
}

/**
 * How many jobs of each slot are read at first; if that is too few, four times as many. If all slots have about as many, hardly any has more
 * among the first.
 */
function firstChunk(limit: number, slots: number): number {
  const mean = limit / Math.max(1, slots);
  return Math.min(limit, Math.ceil(mean + 3 * Math.sqrt(mean) + 1));
}

export function partitionDue(session: Session, params: PartitionDueParams): PartitionDue {
  const { connection, ns, now } = session;
  const partition = connection.get(
    "select first_slot, end_slot from escapement_partitions where ns = ? and partition = ?",
    ns,
    params.partition,
  );
  if (partition === undefined) return { now: new Date(now), jobs: [], last: null, nextAt: null };
  const horizon = now + params.aheadMs;
  const first = firstInSlots(session, slotsOf(partition), params, horizon);
  const due = first.slice(0, params.limit).filter(({ runAt }) => runAt <= horizon);
  const left = first[due.length];
  return {
    now: new Date(now),
    jobs: due.map(toDueJob),
    last: toPlace(due.at(-1)),
    nextAt: left === undefined ? null : instantOf(left.runAt),
  };
}

function toPlace(found: Found | undefined): DuePlace | null {
  return found === undefined ? null : { runAt: instantOf(found.runAt), order: found.seq };
}

/**
 * The first jobs of a range of slots by runAt: `limit` of them, or all up to the first beyond the horizon.
 * A little is read from each slot and merged, so a long backlog is never sorted. Index: escapement_jobs_relay.
 */
function firstInSlots(session: Session, slots: Slots, params: PartitionDueParams, horizon: number): Found[] {
  const limit = params.limit + 1;
  const occupied = [...occupiedSlots(session, slots)];
  const after = params.after ?? { runAt: new Date(-1), order: 0 };
  for (let chunk = firstChunk(limit, occupied.length); ; chunk = Math.min(chunk * 4, limit)) {
    let known = Number.POSITIVE_INFINITY;
    const found: Found[] = [];
    for (const slot of occupied) {
      const jobs = readSlot(session, slot, chunk, after);
      found.push(...jobs);
      // Beyond the last one read, this slot may have more.
      if (jobs.length === chunk) known = Math.min(known, jobs.at(-1)?.runAt ?? known);
    }
    found.sort((a, b) => a.runAt - b.runAt || a.seq - b.seq);
    const sure = found.filter(({ runAt }) => runAt < known || known === Number.POSITIVE_INFINITY);
    const enough = sure.length >= limit || sure.some(({ runAt }) => runAt > horizon);
    if (enough || known === Number.POSITIVE_INFINITY) return sure;
    if (chunk >= limit) return found;
  }
}

function* occupiedSlots({ connection, ns }: Session, { firstSlot, endSlot }: Slots): Generator<number> {
  for (let slot = firstSlot; slot < endSlot; slot += 1) {
    const row = connection.get(
      `select slot from escapement_jobs where shelf = 'relay' and ns = ? and slot >= ? and slot < ?
       order by slot limit 1`,
      ns,
      slot,
      endSlot,
    );
    if (row === undefined) return;
    slot = numberOf(row["slot"]);
    yield slot;
  }
}

function readSlot({ connection, ns, now }: Session, slot: number, limit: number, after: DuePlace): Found[] {
  const rows = connection.tuples(
    // One that a checkpoint would leave out each time must not be offered again and again.
    `select ${dueColumns} from escapement_jobs where shelf = 'relay' and ns = ? and slot = ? and relayed = 1
       and (run_at, seq) > (?, ?) and (expire_at is null or expire_at > ? or attempt > 0)
     order by run_at, seq limit +?`,
    ns,
    slot,
    after.runAt.getTime(),
    after.order,
    now,
    limit,
  );
  return rows.map((row) => ({ seq: numberOf(row[0]), runAt: numberOf(row[1]), row }));
}
