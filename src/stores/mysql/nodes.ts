import { readNodeRecord } from "../../node-record.ts";
import type { NodeRecord, SeenNode } from "../../store.ts";
import { dateOf, textOf } from "./rows.ts";
import type { Session } from "./session.ts";
import { now, sql } from "./sql.ts";

export async function putNode({ link, ns }: Session, node: NodeRecord): Promise<void> {
  link.write(
    sql`insert into escapement_nodes (ns, id, started_at, seen_at, record)
      values (${ns}, ${node.id}, ${now}, ${now}, ${JSON.stringify(node)})
      on duplicate key update seen_at = values(seen_at), record = values(record)`,
  );
}

export async function removeNode({ link, ns }: Session, id: string): Promise<void> {
  link.write(sql`delete from escapement_nodes where ns = ${ns} and id = ${id}`);
}

/** By id. */
export async function nodes(session: Session): Promise<SeenNode[]> {
  const { rows } = await session.link.query(
    sql`select started_at, seen_at, record, id from escapement_nodes where ns = ${session.ns} order by id`,
  );
  return rows.map((row) => {
    const record = readNodeRecord(textOf(row[3]), textOf(row[2]));
    const seenAt = dateOf(row[1]);
    return {
      ...record,
      startedAt: dateOf(row[0]),
      seenAt,
      alive: session.now - seenAt.getTime() <= record.ttlMs,
    };
  });
}
