import type { QueueChange, QueueConfig, RateLimit } from "../../store.ts";
import type { Link, Tuple } from "./link.ts";
import { numberOf, numberOrNull, textOf } from "./rows.ts";
import type { Session } from "./session.ts";
import { fixed, sql } from "./sql.ts";

export interface QueueState {
  readonly paused: boolean;
  readonly concurrency: number | null;
  readonly rate: RateLimit | null;
}

const unlimited: QueueState = { paused: false, concurrency: null, rate: null };

/** What is remembered of the queues that were configured, and which version of it that is. */
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
    const { concurrency, rate } = this.of(queue);
    return concurrency !== null || rate !== null;
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
