import type { NodeRecord, SeenNode } from "../../store/nodes.ts";
import type { QueueChange, QueueConfig } from "../../store/queues.ts";
import { isLimited, type QueueState, unlimited } from "../limits.ts";
import { readNodeRecord } from "../node-record.ts";
import type { Link, Tuple } from "./connection/link.ts";
import { fixed, now, sql } from "./connection/sql.ts";
import { dateOf, numberOf, numberOrNull, textOf } from "./rows.ts";
import type { Session } from "./session.ts";

/** The cached configuration of the queues, and its version. */
export class Queues {
  readonly #ns: number;
  #states = new Map<string, QueueState>();
  #version = -1;

  constructor(ns: number) {
    this.#ns = ns;
  }

  get version(): number {
    return this.#version;
  }

  of(queue: string): QueueState {
    return this.#states.get(queue) ?? unlimited;
  }

  isLimited(queue: string): boolean {
    return isLimited(this.of(queue));
  }

  async refresh(link: Link): Promise<void> {
    // The version first: a change in between is then noticed the next time.
    const [version, configs] = await Promise.all([
      link.query(sql`select config_version from escapement_namespaces where ns = ${this.#ns}`),
      link.query(sql`select ${queueColumns} from escapement_queues where ns = ${this.#ns}`),
    ]);
    this.#states = new Map(configs.rows.map(toQueue).map((config) => [config.queue, config]));
    this.#version = numberOf(version.rows[0]?.[0]);
  }
}

const queueColumns = fixed("queue, paused, concurrency, rate_limit, rate_per_ms");

export async function configureQueue(session: Session, change: QueueChange): Promise<QueueConfig> {
  const { link, ns } = session;
  // The row of the namespace is the lock under which queues are changed.
  link.write(sql`update escapement_namespaces set config_version = config_version + 1 where ns = ${ns}`);
  const { rows } = await link.query(
    sql`select ${queueColumns} from escapement_queues where ns = ${ns} and queue = ${change.queue} for update`,
  );
  const old = rows[0] === undefined ? undefined : toQueue(rows[0]);
  const rate = change.rate === undefined ? (old?.rate ?? null) : change.rate;
  const config = {
    queue: change.queue,
    paused: change.paused ?? old?.paused ?? false,
    concurrency: change.concurrency === undefined ? (old?.concurrency ?? null) : change.concurrency,
    rate: rate === null ? null : { limit: rate.limit, perMs: rate.perMs },
  };
  link.write(
    sql`insert into escapement_queues (ns, ${queueColumns})
      values (${ns}, ${config.queue}, ${config.paused}, ${config.concurrency}, ${rate?.limit ?? null}, ${rate?.perMs ?? null})
      on duplicate key update paused = values(paused), concurrency = values(concurrency),
        rate_limit = values(rate_limit), rate_per_ms = values(rate_per_ms)`,
  );
  session.notices.queueConfigured();
  session.notices.claimable(change.queue);
  return config;
}

export async function queues({ link, ns }: Session): Promise<QueueConfig[]> {
  const { rows } = await link.query(
    sql`select ${queueColumns} from escapement_queues where ns = ${ns} order by queue`,
  );
  return rows.map(toQueue);
}

function toQueue(row: Tuple): QueueConfig {
  const limit = numberOrNull(row[3]);
  const perMs = numberOrNull(row[4]);
  return {
    queue: textOf(row[0]),
    paused: numberOf(row[1]) !== 0,
    concurrency: numberOrNull(row[2]),
    rate: limit === null || perMs === null ? null : { limit, perMs },
  };
}

export async function putNode({ link, ns }: Session, node: NodeRecord): Promise<void> {
  link.write(
    sql`insert into escapement_nodes (ns, id, started_at, seen_at, record)
      values (${ns}, ${node.id}, ${now}, ${now}, ${JSON.stringify(node)})
      on duplicate key update seen_at = values(seen_at), record = values(record)`,
  );
}

export async function removeNode({ link, ns }: Session, { id }: { readonly id: string }): Promise<void> {
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
