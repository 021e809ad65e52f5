import { isPlainSuccess } from "../../state.ts";
import {
  type AcquireParams,
  type CheckpointParams,
  type CheckpointResult,
  longestLeaseMs,
  type PartitionDue,
  type PartitionDueParams,
  type PartitionGrant,
  type PartitionHold,
  type PartitionOutcome,
  type PartitionTable,
  slotCount,
} from "../../store/partitions.ts";
import { NoticeDraft } from "../notice-draft.ts";
import { endingsOf, readFinished, readSucceeded } from "./claim.ts";
import { numberList, textList, toMs } from "./connection/encode.ts";
import {
  dateOf,
  dateOrNull,
  deliveryOf,
  listOf,
  numberOf,
  recordOf,
  textOf,
  textOrNull,
  toClaimedJob,
  tuplesOf,
} from "./rows.ts";
import type { Session } from "./session.ts";

export async function partitions(session: Session): Promise<PartitionTable> {
  const { schema, functions } = session;
  const answer = await session.run(
    `select json_build_object('wanted', n.partition_count, 'partitions', (
       select coalesce(json_agg(json_build_array(partition, epoch, first_slot, end_slot, mark,
         case when ${functions}.is_held(p, ${functions}.now_ms($2::bigint), $3::bigint) then owner end) order by partition), '[]')
       from ${schema}.partitions p where ns = n.ns and partition >= 0 and partition < n.partition_count))::text as answer
     from ${schema}.namespaces n where n.ns = $1`,
    [session.ns, session.now, longestLeaseMs],
  );
  const table = recordOf(answer);
  return {
    wanted: numberOf(table["wanted"]),
    partitions: tuplesOf(table["partitions"]).map(([partition, epoch, firstSlot, endSlot, mark, owner]) => ({
      partition: numberOf(partition),
      epoch: numberOf(epoch),
      firstSlot: numberOf(firstSlot),
      endSlot: numberOf(endSlot),
      mark: dateOrNull(mark),
      owner: textOrNull(owner),
    })),
  };
}

export async function acquirePartitions(session: Session, params: AcquireParams): Promise<PartitionGrant[]> {
  const answer = await session.run(
    `select ${session.functions}.acquire_partitions($1, $2, $3, $4, $5, $6, $7, $8)::text as answer`,
    [
      session.ns,
      session.now,
      params.owner,
      Math.trunc(params.leaseMs),
      longestLeaseMs,
      slotCount,
      params.partitions,
      params.want,
    ],
  );
  return tuplesOf(answer).map(([partition, epoch, firstSlot, endSlot, mark, named]) => ({
    partition: numberOf(partition),
    epoch: numberOf(epoch),
    firstSlot: numberOf(firstSlot),
    endSlot: numberOf(endSlot),
    mark: dateOrNull(mark),
    named: tuplesOf(named).map(toClaimedJob),
  }));
}

export async function renewPartitions(
  session: Session,
  params: PartitionHold & { readonly leaseMs: number },
): Promise<PartitionOutcome[]> {
  if (params.held.length === 0) return [];
  const { schema, functions } = session;
  const answer = await session.run(
    `with asked as (select * from unnest($3::text::integer[], $4::text::integer[]) with ordinality as a (partition, epoch, place)),
     renewed as (
       update ${schema}.partitions p set lease_until = ${functions}.now_ms($2::bigint) + $5::bigint from asked a
       where p.ns = $1 and p.partition = a.partition and p.epoch = a.epoch and p.owner = $6 returning p.partition, p.epoch)
     select json_agg(r.partition is not null order by a.place)::text as answer from asked a left join renewed r using (partition, epoch)`,
    [session.ns, session.now, ...heldValues(params), Math.trunc(params.leaseMs), params.owner],
  );
  return listOf(answer).map((renewed) => (renewed === true ? "renewed" : "stale"));
}

export async function releasePartitions(session: Session, params: PartitionHold): Promise<void> {
  await session.run(
    `with released as (
       update ${session.schema}.partitions p set owner = null
       from unnest($2::text::integer[], $3::text::integer[]) as a (partition, epoch)
       where p.ns = $1 and p.partition = a.partition and p.epoch = a.epoch and p.owner = $4 returning 1)
     select count(*)::text as answer from released`,
    [session.ns, ...heldValues(params), params.owner],
  );
}

function heldValues({ held }: PartitionHold): [string, string] {
  return [numberList(held.map(({ partition }) => partition)), numberList(held.map(({ epoch }) => epoch))];
}

export async function partitionDue(session: Session, params: PartitionDueParams): Promise<PartitionDue> {
  const answer = await session.run(
    `select ${session.functions}.partition_due($1, $2, $3, $4, $5, $6, $7)::text as answer`,
    [
      session.ns,
      session.now,
      params.partition,
      Math.trunc(params.aheadMs),
      params.limit,
      params.after?.runAt.getTime() ?? -1,
      params.after?.order ?? 0,
    ],
  );
  const { now, jobs, last, nextAt } = recordOf(answer);
  const [lastAt, lastOrder] = listOf(last);
  return {
    now: dateOf(now),
    last: lastAt === undefined ? null : { runAt: dateOf(lastAt), order: numberOf(lastOrder) },
    jobs: tuplesOf(jobs).map(([id, name, queue, delivery, runAt, token, version]) => ({
      id: textOf(id),
      name: textOf(name),
      queue: textOf(queue),
      delivery: deliveryOf(delivery),
      runAt: dateOf(runAt),
      token: numberOf(token),
      version: numberOf(version),
    })),
    nextAt: dateOrNull(nextAt),
  };
}

export async function checkpoint(session: Session, params: CheckpointParams): Promise<CheckpointResult> {
  const { settled, name } = params;
  const ids = settled.map(({ id }) => id);
  // Almost every batch ends this way, so it is written as a whole.
  const isPlain =
    settled.every(({ outcome }) => isPlainSuccess(outcome) && outcome.result === null) &&
    new Set(ids).size === ids.length;
  const answer = await session.run(
    `select ${session.functions}.checkpoint_partition($1, $2, $3, $4, $5, $6, $7::text::text[], $8::text::integer[], $9::text::json,
       $10::text::text[], $11::text::integer[], $12)::text as answer`,
    [
      session.ns,
      session.now,
      params.owner,
      params.partition,
      params.epoch,
      toMs(params.mark),
      textList(ids),
      numberList(settled.map(({ token }) => token)),
      isPlain ? null : endingsOf(settled),
      textList(name.map(({ id }) => id)),
      numberList(name.map(({ version }) => version)),
      Math.trunc(params.aheadMs),
    ],
  );
  if (answer === null) return { outcome: "stale", finished: [], named: [] };
  const { finished, named } = recordOf(answer);
  const draft = new NoticeDraft();
  const results = isPlain ? readSucceeded(ids, finished, draft) : readFinished(finished, draft);
  session.publish(draft.toNotices());
  return { outcome: "written", finished: results, named: tuplesOf(named).map(toClaimedJob) };
}
