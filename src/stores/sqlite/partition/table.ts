import { firstSlotOf, longestLeaseMs, type PartitionTable } from "../../../store/partitions.ts";
import { dateOrNull, numberOf, textOrNull } from "../rows.ts";
import type { Session } from "../session.ts";

/** Whether a node holds a partition; takes {@link leaseBounds}. */
export const isHeld =
  "coalesce(owner is not null and lease_boot = ? and lease_until > ? and lease_until <= ?, false)";

export function leaseBounds({ boot, monotonic }: Session): [boot: number, after: number, upTo: number] {
  return [boot, monotonic, Math.ceil(monotonic + longestLeaseMs)];
}

export function partitions(session: Session): PartitionTable {
  const { connection, ns } = session;
  const wanted = wantedPartitions(session);
  const rows = connection.all(
    `select partition, epoch, first_slot, end_slot, mark, case when ${isHeld} then owner end as owner
     from escapement_partitions where ns = ? and partition >= 0 and partition < ? order by partition`,
    ...leaseBounds(session),
    ns,
    wanted,
  );
  return {
    wanted,
    partitions: rows.map((row) => ({
      partition: numberOf(row["partition"]),
      epoch: numberOf(row["epoch"]),
      firstSlot: numberOf(row["first_slot"]),
      endSlot: numberOf(row["end_slot"]),
      mark: dateOrNull(row["mark"]),
      owner: textOrNull(row["owner"]),
    })),
  };
}

/** Creates the partitions, or more of them once none is held. Returns how many there are; null while some must be given back first. */
export function cutPartitions(session: Session, asked: number): number | null {
  const { connection, ns } = session;
  connection.run(
    "update escapement_namespaces set partition_count = ? where ns = ? and partition_count < ?",
    asked,
    ns,
    asked,
  );
  const wanted = wantedPartitions(session);
  const row = connection.get(
    `select coalesce(sum(partition >= 0 and partition < ?), 0) as made, coalesce(max(epoch), 0) as epoch,
       coalesce(sum(${isHeld}), 0) as held
     from escapement_partitions where ns = ?`,
    wanted,
    ...leaseBounds(session),
    ns,
  );
  if (numberOf(row?.["made"]) === wanted) return wanted;
  if (numberOf(row?.["held"]) > 0) return null;
  connection.run("delete from escapement_partitions where ns = ?", ns);
  for (let partition = 0; partition < wanted; partition += 1) {
    connection.run(
      "insert into escapement_partitions (ns, partition, first_slot, end_slot, epoch) values (?, ?, ?, ?, ?)",
      ns,
      partition,
      firstSlotOf(partition, wanted),
      firstSlotOf(partition + 1, wanted),
      // No epoch of any partition is used twice, so a holder from before the cut is stale after it.
      numberOf(row?.["epoch"]),
    );
  }
  return wanted;
}

function wantedPartitions({ connection, ns }: Session): number {
  const row = connection.get("select partition_count from escapement_namespaces where ns = ?", ns);
  return row === undefined ? 0 : numberOf(row["partition_count"]);
}
