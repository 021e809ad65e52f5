import { follow } from "../../state.ts";
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
import type { Tuple } from "./connection/link.ts";
import { fixed, join, now, type Sql, sql } from "./connection/sql.ts";
import { finishAll } from "./finish.ts";
import { type JobRow, lockJobs } from "./jobs/find.ts";
import { cutPartitions, isHeld, partitionCounts } from "./partition/table.ts";
import { claimedColumns, dateOrNull, numberOf, seqOf, toClaimedJob } from "./rows.ts";
import type { Session } from "./session.ts";

export async function acquirePartitions(session: Session, params: AcquireParams): Promise<PartitionGrant[]> {
  const { link, ns, skipLocked } = session;
  const [isCut] = await Promise.all([cutPartitions(session, params.partitions), session.lines.refresh(link)]);
  if (!isCut) return [];
  const lock = fixed(skipLocked ? "for update skip locked" : "for update");
  const { rows } = await link.query(
    sql`select partition_number, epoch, mark from escapement_partitions
      where ns = ${ns} and partition_number >= 0 and not ${isHeld} order by partition_number
      limit ${Math.max(0, params.want)} ${lock}`,
  );
  if (rows.length === 0) return [];
  // Read under their locks, which keep others from cutting again. A request for more may have come in between.
  const counts = await link.query(
    sql`select ${partitionCounts} from escapement_namespaces as n where ns = ${ns}`,
  );
  const [wanted = 0, made = 0] = (counts.rows[0] ?? []).map(numberOf);
  if (made !== wanted) return [];
  const grants: PartitionGrant[] = [];
  for (const row of rows) if (numberOf(row[0]) < made) grants.push(await grant(session, row, made, params));
  return grants;
}

async function grant(
  session: Session,
  row: Tuple,
  count: number,
  params: AcquireParams,
): Promise<PartitionGrant> {
  const { link, ns, lines } = session;
  const partition = numberOf(row[0]);
  // Computed and written back, since the row may be damaged.
  const slots = { firstSlot: firstSlotOf(partition, count), endSlot: firstSlotOf(partition + 1, count) };
  const epoch = nextEpoch(numberOf(row[1]));
  link.write(
    sql`update escapement_partitions set first_slot = ${slots.firstSlot}, end_slot = ${slots.endSlot},
        owner = ${params.owner}, epoch = ${epoch}, lease_until = ${now} + ${Math.ceil(params.leaseMs)}
      where ns = ${ns} and partition_number = ${partition}`,
  );
  const named = sql`line in (${lines.inSlots("named", slots.firstSlot, slots.endSlot)})
    and slot >= ${slots.firstSlot} and slot < ${slots.endSlot}`;
  link.write(
    sql`update escapement_jobs set claimer = ${session.claimers.of(params.owner)}, claimed_at = ${now}, token = ${fixed(risen("least", "token"))} where ${named}`,
  );
  const { rows } = await link.query(
    sql`select ${claimedColumns} from escapement_jobs as j where ${named} order by run_at, seq`,
  );
  return { partition, epoch, ...slots, mark: dateOrNull(row[2]), named: rows.map(toClaimedJob) };
}

export async function renewPartitions(
  { link, ns }: Session,
  params: PartitionHold & { readonly leaseMs: number },
): Promise<PartitionOutcome[]> {
  return Promise.all(
    params.held.map(async (ref) => {
      const own = isOwned(ns, params.owner, ref);
      link.write(
        sql`update escapement_partitions set lease_until = ${now} + ${Math.ceil(params.leaseMs)} where ${own}`,
      );
      const { rows } = await link.query(sql`select 1 from escapement_partitions where ${own} for update`);
      return rows.length > 0 ? "renewed" : "stale";
    }),
  );
}

export async function releasePartitions({ link, ns }: Session, params: PartitionHold): Promise<void> {
  for (const ref of params.held) {
    link.write(sql`update escapement_partitions set owner = null where ${isOwned(ns, params.owner, ref)}`);
  }
}

export function isOwned(ns: number, owner: string, { partition, epoch }: PartitionRef): Sql {
  return sql`ns = ${ns} and partition_number = ${partition} and epoch = ${epoch} and owner = ${owner}`;
}

export async function checkpoint(session: Session, params: CheckpointParams): Promise<CheckpointResult> {
  const { link, ns } = session;
  const [{ rows }] = await Promise.all([
    link.query(
      sql`select first_slot, end_slot from escapement_partitions where ${isOwned(ns, params.owner, params)} for update`,
    ),
    session.lines.refresh(link),
  ]);
  const row = rows[0];
  if (row === undefined) return { outcome: "stale", finished: [], named: [] };
  const slots = { firstSlot: numberOf(row[0]), endSlot: numberOf(row[1]) };
  const mine = (job: JobRow): boolean =>
    job.relayed && job.slot >= slots.firstSlot && job.slot < slots.endSlot;
  const owner = session.claimers.of(params.owner);
  const finished = await finishAll(session, owner, params.settled, mine);
  if (params.mark !== null) {
    link.write(
      sql`update escapement_partitions set mark = ${params.mark.getTime()}
        where ns = ${ns} and partition_number = ${params.partition}`,
    );
  }
  return { outcome: "written", finished, named: await nameAll(session, owner, params, mine) };
}

/** Names what may be published: the jobs that are due and unchanged, and those that this owner named before and did not settle. */
async function nameAll(
  session: Session,
  owner: number,
  { name: asked, aheadMs }: CheckpointParams,
  mine: (job: JobRow) => boolean,
): Promise<ClaimedJob[]> {
  if (asked.length === 0) return [];
  const { link } = session;
  const jobs = await lockJobs(session, [...new Set(asked.map(({ id }) => id))]);
  const fresh = new Map<number, JobRow>();
  const seqs = asked.flatMap(({ id, version }) => {
    const job = jobs.get(id);
    if (job === undefined || !mine(job) || job.version !== version) return [];
    if (isDue(session, job, aheadMs)) fresh.set(job.seq, job);
    else if (job.state !== "active" || job.claimer !== owner) return [];
    return [job.seq];
  });
  if (fresh.size > 0) {
    link.write(
      sql`update escapement_jobs set state = ${follow("waiting", "claim")}, line = ${namedLine(session, fresh.values())}, urgency = 0,
          at = ${now}, reason = null, attempt = ${fixed(risen("least", "attempt"))}, token = ${fixed(risen("least", "token"))}, claimer = ${owner}, claimed_at = ${now}
        where seq in (${[...fresh.keys()]})`,
    );
  }
  if (seqs.length === 0) return [];
  const { rows } = await link.query(
    sql`select ${claimedColumns} from escapement_jobs as j where seq in (${seqs})`,
  );
  const named = new Map(rows.map((one) => [seqOf(one), toClaimedJob(one)]));
  for (const [seq, job] of named) session.remembered.named.hold(job, seq);
  return seqs.flatMap((seq) => named.get(seq) ?? []);
}

/** The line of named jobs in a job's slot. */
function namedLine({ lines }: Session, jobs: Iterable<JobRow>): Sql {
  const slots = new Set(Array.from(jobs, ({ slot }) => slot));
  const cases = Array.from(slots, (slot) => sql`when ${slot} then ${lines.inSlot("named", slot)}`);
  return sql`case slot ${join(cases, " ")} end`;
}

function isDue({ now: at }: Session, job: JobRow, aheadMs: number): boolean {
  const expired = job.expireAt !== null && job.expireAt <= at && job.attempt === 0;
  return job.state === "waiting" && job.runAt <= at + aheadMs && !expired;
}
