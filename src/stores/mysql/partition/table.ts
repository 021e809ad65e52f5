import { firstSlotOf, longestLeaseMs, type PartitionTable } from "../../../store/partitions.ts";
import { join, now, sql } from "../connection/sql.ts";
import { dateOrNull, numberOf, textOrNull } from "../rows.ts";
import type { Session } from "../session.ts";

/** Whether a node holds a partition. */
export const isHeld = sql`(owner is not null and lease_until > ${now} and lease_until <= ${now} + ${longestLeaseMs})`;

export async function partitions({ link, ns }: Session): Promise<PartitionTable> {
  const [count, { rows }] = await Promise.all([
    link.query(sql`select partition_count from escapement_namespaces where ns = ${ns}`),
    link.query(
      sql`select partition_number, epoch, first_slot, end_slot, mark, if(${isHeld}, owner, null)
        from escapement_partitions where ns = ${ns} order by partition_number`,
    ),
  ]);
  const wanted = numberOf(count.rows[0]?.[0] ?? 0);
  const known = rows.filter(([partition]) => numberOf(partition) >= 0 && numberOf(partition) < wanted);
  return {
    wanted,
    partitions: known.map(([partition, epoch, firstSlot, endSlot, mark, owner]) => ({
      partition: numberOf(partition),
      epoch: numberOf(epoch),
      firstSlot: numberOf(firstSlot),
      endSlot: numberOf(endSlot),
      mark: dateOrNull(mark),
      owner: textOrNull(owner),
    })),
  };
}

/** Of a namespace `n`: how many partitions it should have, and how many it has. A row whose number is out of range does not count. */
export const partitionCounts = sql`partition_count, (select count(*) from escapement_partitions as p
  where p.ns = n.ns and p.partition_number >= 0 and p.partition_number < n.partition_count)`;

/** Creates the partitions, or more of them once none is held; returns whether there are as many as there should be. */
export async function cutPartitions(session: Session, asked: number): Promise<boolean> {
  const { link, ns } = session;
  const { rows } = await link.query(
    sql`select ${partitionCounts}, (select count(*) from escapement_partitions as p where p.ns = n.ns and ${isHeld})
      from escapement_namespaces as n where ns = ${ns}`,
  );
  const [wanted = 0, made = 0, held = 0] = (rows[0] ?? []).map(numberOf);
  if (made === wanted && asked <= wanted) return true;
  link.write(
    sql`update escapement_namespaces set partition_count = ${asked} where ns = ${ns} and partition_count < ${asked}`,
  );
  // Without a lock on them: while held partitions must be waited for, acquiring must not block renewals.
  return held > 0 ? false : cut(session);
}

async function cut({ link, ns }: Session): Promise<boolean> {
  // Other nodes that want to cut wait here, and then find it done; a grant in progress holds its rows.
  const locked = await link.query(
    sql`select partition_count from escapement_namespaces where ns = ${ns} for update`,
  );
  const wanted = numberOf(locked.rows[0]?.[0]);
  const { rows } = await link.query(
    sql`select epoch, ${isHeld}, partition_number >= 0 and partition_number < ${wanted}
      from escapement_partitions where ns = ${ns} for update`,
  );
  if (rows.filter(([, , isKnown]) => numberOf(isKnown) === 1).length === wanted) return true;
  if (rows.some(([, held]) => numberOf(held) === 1)) return false;
  // No epoch of any partition is used twice, so a holder from before the cut is stale after it.
  const epoch = rows.reduce((highest, row) => Math.max(highest, numberOf(row[0])), 0);
  const values = Array.from(
    { length: wanted },
    (_, partition) =>
      sql`(${ns}, ${partition}, ${firstSlotOf(partition, wanted)}, ${firstSlotOf(partition + 1, wanted)}, ${epoch})`,
  );
  link.write(sql`delete from escapement_partitions where ns = ${ns}`);
  link.write(
    sql`insert into escapement_partitions (ns, partition_number, first_slot, end_slot, epoch) values ${join(values, ", ")}`,
  );
  return true;
}
