import { type PartitionTable, slotCount } from "../../store.ts";
import type { Row } from "./connection.ts";
import { dateOrNull, numberOf, textOrNull } from "./rows.ts";
import type { Session } from "./session.ts";

/** A partition that somebody holds. */
const isHeld = "owner is not null and lease_boot = ? and lease_until > ?";

export function partitions({ connection, ns, boot, monotonic }: Session): PartitionTable {
  const rows = connection.all(
    `select partition, epoch, first_slot, end_slot, mark, case when ${isHeld} then owner end as owner
     from escapement_partitions where ns = ? order by partition`,
    boot,
    monotonic,
    ns,
  );
  return {
    wanted: wantedOf(connection.get("select partition_count from escapement_namespaces where ns = ?", ns)),
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

/** Makes the partitions, or more of them once nobody holds one; whether there are as many as there shall be. */
export function cutPartitions(session: Session, asked: number): boolean {
  const { connection, ns, boot, monotonic } = session;
  connection.run(
    "update escapement_namespaces set partition_count = ? where ns = ? and partition_count < ?",
    asked,
    ns,
    asked,
  );
  const wanted = wantedOf(
    connection.get("select partition_count from escapement_namespaces where ns = ?", ns),
  );
  const row = connection.get(
    `select count(*) as made, coalesce(max(epoch), 0) as epoch, coalesce(sum(${isHeld}), 0) as held
     from escapement_partitions where ns = ?`,
    boot,
    monotonic,
    ns,
  );
  if (numberOf(row?.["made"]) === wanted) return true;
  if (numberOf(row?.["held"]) > 0) return false;
  connection.run("delete from escapement_partitions where ns = ?", ns);
  const firstSlot = (partition: number): number => Math.floor((partition * slotCount) / wanted);
  for (let partition = 0; partition < wanted; partition += 1) {
    connection.run(
      "insert into escapement_partitions (ns, partition, first_slot, end_slot, epoch) values (?, ?, ?, ?, ?)",
      ns,
      partition,
      firstSlot(partition),
      firstSlot(partition + 1),
      // No epoch of any partition comes twice, so that whoever held one before the cut is stale after it.
      numberOf(row?.["epoch"]),
    );
  }
  return true;
}

function wantedOf(row: Row | undefined): number {
  return row === undefined ? 0 : numberOf(row["partition_count"]);
}
