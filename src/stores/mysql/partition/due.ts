import type { DueJob, DuePlace, PartitionDue, PartitionDueParams } from "../../../store/partitions.ts";
import { instantOf } from "../../../unreadable.ts";
import type { Tuple } from "../connection/link.ts";
import { fixed, join, now, type Sql, sql } from "../connection/sql.ts";
import { dateOf, deliveryOf, numberOf, textOf } from "../rows.ts";
import type { Session } from "../session.ts";

/** A row of {@link dueColumns}. */
interface Found {
  readonly seq: number;
  readonly runAt: number;
  readonly row: Tuple;
}

const dueColumns = fixed("line, seq, at, id, name, queue, delivery, run_at, token, version");

function toDueJob({ row }: Found): DueJob {
  return {
    id: textOf(row[3]),
    name: textOf(row[4]),
    queue: textOf(row[5]),
    delivery: deliveryOf(row[6]),
    runAt: dateOf(row[7]),
    token: numberOf(row[8]),
    version: numberOf(row[9]),
  };
}

interface Slots {
  readonly firstSlot: number;
  readonly endSlot: number;
}

/**
 * How many jobs of each line are read at first; if that is too few, four times as many. If all lines have about as many, hardly any has more
 * among the first.
 */
function firstChunk(limit: number, lines: number): number {
  const mean = limit / Math.max(1, lines);
  return Math.min(limit, Math.ceil(mean + 3 * Math.sqrt(mean) + 1));
}

export async function partitionDue(session: Session, params: PartitionDueParams): Promise<PartitionDue> {
  const { link, ns } = session;
  const [{ rows }] = await Promise.all([
    link.query(
      sql`select first_slot, end_slot from escapement_partitions where ns = ${ns} and partition_number = ${params.partition}`,
    ),
    session.lines.refresh(link),
  ]);
  const row = rows[0];
  const at = new Date(session.now);
  if (row === undefined) return { now: at, jobs: [], last: null, nextAt: null };
  const horizon = session.now + params.aheadMs;
  const slots = { firstSlot: numberOf(row[0]), endSlot: numberOf(row[1]) };
  const first = await firstInLines(session, slots, params, horizon);
  const due = first.slice(0, params.limit).filter(({ runAt }) => runAt <= horizon);
  const left = first[due.length];
  return {
    now: at,
    jobs: due.map(toDueJob),
    last: toPlace(due.at(-1)),
    nextAt: left === undefined ? null : instantOf(left.runAt),
  };
}

function toPlace(found: Found | undefined): DuePlace | null {
  return found === undefined ? null : { runAt: instantOf(found.runAt), order: found.seq };
}

/**
 * The first jobs of some slots by runAt: `limit` of them, or all up to the first beyond the horizon. A little is read from each
 * line and merged, so a long backlog is never sorted. Index: escapement_jobs_line.
 */
async function firstInLines(
  session: Session,
  slots: Slots,
  { limit: most, after }: PartitionDueParams,
  horizon: number,
): Promise<Found[]> {
  const lines = session.lines.inSlots("relay", slots.firstSlot, slots.endSlot);
  if (lines.length === 0) return [];
  const limit = most + 1;
  for (let chunk = firstChunk(limit, lines.length); ; chunk = Math.min(chunk * 4, limit)) {
    const read = await readLines(session, lines, slots, chunk, after);
    let known = Number.POSITIVE_INFINITY;
    // Beyond the last one read, a line may have more.
    for (const jobs of read) if (jobs.length === chunk) known = Math.min(known, jobs.at(-1)?.runAt ?? known);
    const found = read.flat().sort((a, b) => a.runAt - b.runAt || a.seq - b.seq);
    const sure = found.filter(({ runAt }) => runAt < known || known === Number.POSITIVE_INFINITY);
    const enough = sure.length >= limit || sure.some(({ runAt }) => runAt > horizon);
    if (enough || known === Number.POSITIVE_INFINITY) return sure;
    if (chunk >= limit) return found;
  }
}

async function readLines(
  { link, ns }: Session,
  lines: readonly number[],
  { firstSlot, endSlot }: Slots,
  limit: number,
  after: DuePlace | null,
): Promise<readonly (readonly Found[])[]> {
  // Not as a row comparison, which would use no index.
  const behind = (runAt: number, order: number): Sql =>
    sql`and at >= ${runAt} and (at > ${runAt} or seq > ${order})`;
  const place = after === null ? fixed("") : behind(after.runAt.getTime(), after.order);
  // Something else may have moved a row to another namespace; no checkpoint would ever take it.
  const parts = lines.map(
    (line) =>
      sql`(select ${dueColumns} from escapement_jobs force index (escapement_jobs_line) where line = ${line} and urgency = 0 ${place}
        and ns = ${ns} and slot >= ${firstSlot} and slot < ${endSlot} and relayed = 1 and (expire_at is null or expire_at > ${now} or attempt > 0) order by at, seq limit ${limit})`,
  );
  const { rows } = await link.query(sql`${join(parts, " union all ")}`);
  const found = Map.groupBy(rows, (row) => numberOf(row[0]));
  return [...found.values()].map((own) =>
    own
      .map((row) => ({ seq: numberOf(row[1]), runAt: numberOf(row[2]), row }))
      .sort((a, b) => a.runAt - b.runAt || a.seq - b.seq),
  );
}
