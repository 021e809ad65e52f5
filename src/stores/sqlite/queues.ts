import type { NodeRecord, SeenNode } from "../../store/nodes.ts";
import type { QueueChange, QueueConfig } from "../../store/queues.ts";
import { readNodeRecord } from "../node-record.ts";
import type { Row } from "./connection/connection.ts";
import { dateOf, numberOrNull, textOf } from "./rows.ts";
import type { Session } from "./session.ts";

const queueColumns = "queue, paused, concurrency, rate_limit, rate_per_ms";

export function configureQueue(session: Session, change: QueueChange): QueueConfig {
  const { connection, ns } = session;
  const row = connection.get(
    `select ${queueColumns} from escapement_queues where ns = ? and queue = ?`,
    ns,
    change.queue,
  );
  const old = row === undefined ? undefined : toQueue(row);
  const config = {
    queue: change.queue,
    paused: change.paused ?? old?.paused ?? false,
    concurrency: change.concurrency === undefined ? (old?.concurrency ?? null) : change.concurrency,
    rate: change.rate === undefined ? (old?.rate ?? null) : change.rate,
  };
  connection.run(
    `insert or replace into escapement_queues (ns, ${queueColumns}) values (?, ?, ?, ?, ?, ?)`,
    ns,
    config.queue,
    config.paused ? 1 : 0,
    config.concurrency,
    config.rate?.limit ?? null,
    config.rate?.perMs ?? null,
  );
  connection.run(
    "update escapement_active set limited = ? where ns = ? and queue = ?",
    config.concurrency === null ? 0 : 1,
    ns,
    config.queue,
  );
  session.notices.queueConfigured();
  session.notices.claimable(change.queue);
  return {
    ...config,
    rate: config.rate === null ? null : { limit: config.rate.limit, perMs: config.rate.perMs },
  };
}

export function queues({ connection, ns }: Session): QueueConfig[] {
  return connection
    .all(`select ${queueColumns} from escapement_queues where ns = ? order by queue`, ns)
    .map(toQueue);
}

function toQueue(row: Row): QueueConfig {
  const limit = numberOrNull(row["rate_limit"]);
  const perMs = numberOrNull(row["rate_per_ms"]);
  return {
    queue: textOf(row["queue"]),
    paused: row["paused"] !== 0,
    concurrency: numberOrNull(row["concurrency"]),
    rate: limit === null || perMs === null ? null : { limit, perMs },
  };
}

export function putNode({ connection, ns, now }: Session, node: NodeRecord): void {
  connection.run(
    `insert into escapement_nodes (ns, id, started_at, seen_at, record) values (?, ?, ?, ?, ?)
     on conflict do update set seen_at = excluded.seen_at, record = excluded.record`,
    ns,
    node.id,
    now,
    now,
    JSON.stringify(node),
  );
}

export function removeNode({ connection, ns }: Session, { id }: { readonly id: string }): void {
  connection.run("delete from escapement_nodes where ns = ? and id = ?", ns, id);
}

export function nodes({ connection, ns, now }: Session): SeenNode[] {
  const rows = connection.all(
    "select id, started_at, seen_at, record from escapement_nodes where ns = ? order by id",
    ns,
  );
  return rows.map((row) => {
    const record = readNodeRecord(textOf(row["id"]), textOf(row["record"]));
    const seenAt = dateOf(row["seen_at"]);
    return {
      ...record,
      startedAt: dateOf(row["started_at"]),
      seenAt,
      alive: now - seenAt.getTime() <= record.ttlMs,
    };
  });
}
