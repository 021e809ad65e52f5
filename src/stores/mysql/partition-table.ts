import { type PartitionTable, slotCount } from "../../store.ts";
import { dateOrNull, numberOf, textOrNull } from "./rows.ts";
import type { Session } from "./session.ts";
import { join, now, sql } from "./sql.ts";

export async function partitions({ link, ns }: Session): Promise<PartitionTable> {
  const [wanted, { rows }] = await Promise.all([
    link.query(sql`select partition_count from escapement_namespaces where ns = ${ns}`),
    link.query(
      sql`select partition_number, epoch, first_slot, end_slot, mark, if(lease_until > ${now}, owner, null)
        from escapement_partitions where ns = ${ns} order by partition_number`,
    ),
  ]);
  return {
    wanted: numberOf(wanted.rows[0]?.[0] ?? 0),
    partitions: rows.map(([partition, epoch, firstSlot, endSlot, mark, owner]) => ({
      partition: numberOf(partition),
      epoch: numberOf(epoch),
      firstSlot: numberOf(firstSlot),
      endSlot: numberOf(endSlot),
      mark: dateOrNull(mark),
      owner: textOrNull(owner),
    })),
  };
}

/** Makes the partitions, or more of them once nobody holds one; whether there are as many as there shall be. */
export async function cutPartitions(session: Session, asked: number): Promise<boolean> {
  const { link, ns } = session;
  const { rows } = await link.query(
    sql`select partition_count, (select count(*) from escapement_partitions as p where p.ns = n.ns),
        (select count(*) from escapement_partitions as p where p.ns = n.ns and owner is not null and lease_until > ${now})
      from escapement_namespaces as n where ns = ${ns}`,
  );
  const [wanted = 0, made = 0, held = 0] = (rows[0] ?? []).map(numberOf);
  if (made === wanted && asked <= wanted) return true;
  link.write(
    sql`update escapement_namespaces set partition_count = ${asked} where ns = ${ns} and partition_count < ${asked}`,
  );
  // Without a lock on them: while they have to be waited for, those who renew shall not wait for those who ask.
  return held > 0 ? false : cut(session);
}

async function cut({ link, ns }: Session): Promise<boolean> {
  // Others who want to cut wait here, and then find it done; a grant under way holds its rows.
  const locked = await link.query(
    sql`select partition_count from escapement_namespaces where ns = ${ns} for update`,
  );
  const wanted = numberOf(locked.rows[0]?.[0]);
  const { rows } = await link.query(
    sql`select epoch, owner is not null and lease_until > ${now} from escapement_partitions where ns = ${ns} for update`,
  );
  if (rows.length === wanted) return true;
  if (rows.some(([, isHeld]) => numberOf(isHeld) === 1)) return false;
  // No epoch of any partition comes twice, so that whoever held one before the cut is stale after it.
  const epoch = rows.reduce((highest, row) => Math.max(highest, numberOf(row[0])), 0);
  const firstSlot = (partition: number): number => Math.floor((partition * slotCount) / wanted);
  const values = Array.from(
    { length: wanted },
    (_, partition) =>
      sql`(${ns}, ${partition}, ${firstSlot(partition)}, ${firstSlot(partition + 1)}, ${epoch})`,
  );
  link.write(sql`delete from escapement_partitions where ns = ${ns}`);
  link.write(
    sql`insert into escapement_partitions (ns, partition_number, first_slot, end_slot, epoch) values ${join(values, ", ")}`,
  );
  return true;
}
