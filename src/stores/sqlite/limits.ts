import type { ClaimName, ClaimParams, RateLimit } from "../../store/claims.ts";
import type { Limited } from "../choose.ts";
import {
  askedQueues,
  countInWindow,
  isLimited,
  type QueueState,
  type RateWindow,
  unlimited,
  windowOpensAt,
} from "../limits.ts";
import { numberOf, numberOrNull, textOf } from "./rows.ts";
import type { Session } from "./session.ts";

interface LoadedWindow extends RateWindow {
  readonly changed: boolean;
}

/**
 * The limits between one claimer and the due jobs. Active jobs are counted from an index when a limit
 * needs it, never kept as numbers that could drift; what this claim takes is added on top.
 */
export class Limits {
  readonly #session: Session;
  readonly #names: ReadonlyMap<string, ClaimName>;
  /** Names may share a key with different limits; counting beyond the highest is useless. */
  readonly #highestConcurrency: number;
  readonly #asked: ReadonlySet<string> | null;
  readonly #queues: ReadonlyMap<string, QueueState>;
  readonly #activeInQueue = new Map<string, number>();
  readonly #activeUnderKey = new Map<string, number>();
  readonly #windows = new Map<string, LoadedWindow>();

  /** @param hasQueues whether any queue was configured. */
  constructor(session: Session, params: ClaimParams, hasQueues: boolean) {
    this.#session = session;
    this.#names = new Map(params.names.map((name) => [name.name, name]));
    this.#highestConcurrency = Math.max(0, ...params.names.map(({ concurrency }) => concurrency ?? 0));
    this.#asked = params.queues === null ? null : new Set(askedQueues(params.queues));
    this.#queues = hasQueues ? readQueues(session) : new Map();
  }

  /** Whether the claimer wants jobs of this queue, and it is not paused. */
  looksInto(queue: string): boolean {
    return (this.#asked === null || this.#asked.has(queue)) && !this.#queue(queue).paused;
  }

  isLimited(queue: string): boolean {
    return isLimited(this.#queue(queue));
  }

  runs(name: string): boolean {
    return this.#names.has(name);
  }

  /** How many jobs with one key may be active; infinity if the definition sets no limit. */
  keyConcurrency(name: string): number {
    return this.#names.get(name)?.concurrency ?? Number.POSITIVE_INFINITY;
  }

  /** How many more jobs with the key may become active. */
  keyRoom(concurrencyKey: string, name: string): number {
    const limit = this.keyConcurrency(name);
    return Number.isFinite(limit) ? limit - this.#countUnderKey(concurrencyKey) : limit;
  }

  /** When a due job may go: now, at the end of a rate window, or infinity if time alone opens nothing. */
  opensAt(job: Limited): number {
    if (!this.runs(job.name) || !this.looksInto(job.queue)) return Number.POSITIVE_INFINITY;
    return Math.max(this.queueOpensAt(job.queue), this.keysOpenAt(job));
  }

  queueOpensAt(queue: string): number {
    const { concurrency, rate } = this.#queue(queue);
    if (concurrency !== null && this.#countInQueue(queue, concurrency) >= concurrency) {
      return Number.POSITIVE_INFINITY;
    }
    return this.#windowOpensAt("queue", queue, rate);
  }

  keysOpenAt(job: Limited): number {
    if (job.concurrencyKey !== null && this.keyRoom(job.concurrencyKey, job.name) <= 0) {
      return Number.POSITIVE_INFINITY;
    }
    if (job.rateKey === null) return this.#session.now;
    return this.#windowOpensAt("key", job.rateKey, this.#names.get(job.name)?.rate ?? null);
  }

  /** Counts a claim that is being made. */
  count(job: Limited): void {
    const { concurrency, rate } = this.#queue(job.queue);
    if (concurrency !== null)
      bump(this.#activeInQueue, job.queue, this.#countInQueue(job.queue, concurrency));
    if (job.concurrencyKey !== null && this.#highestConcurrency > 0) {
      bump(this.#activeUnderKey, job.concurrencyKey, this.#countUnderKey(job.concurrencyKey));
    }
    this.#countInWindow("queue", job.queue, rate);
    if (job.rateKey !== null)
      this.#countInWindow("key", job.rateKey, this.#names.get(job.name)?.rate ?? null);
  }

  /** Writes the rate windows that this claim used. */
  write(): void {
    const { connection, ns } = this.#session;
    for (const [key, window] of this.#windows) {
      if (!window.changed) continue;
      const space = key.indexOf(" ");
      connection.run(
        `insert into escapement_windows (ns, kind, key, started_at, used, per_ms) values (?, ?, ?, ?, ?, ?)
         on conflict do update set started_at = excluded.started_at, used = excluded.used, per_ms = excluded.per_ms`,
        ns,
        key.slice(0, space),
        key.slice(space + 1),
        window.startedAt,
        window.used,
        window.perMs,
      );
    }
  }

  #queue(queue: string): QueueState {
    return this.#queues.get(queue) ?? unlimited;
  }

  #countInQueue(queue: string, limit: number): number {
    const known = this.#activeInQueue.get(queue);
    if (known !== undefined) return known;
    const row = this.#session.connection.get(
      `select count(*) as active from (
         select 1 from escapement_active where ns = ? and queue = ? and limited = 1 and relayed = 0 limit +?)`,
      this.#session.ns,
      queue,
      limit,
    );
    const active = numberOf(row?.["active"]);
    this.#activeInQueue.set(queue, active);
    return active;
  }

  #countUnderKey(key: string): number {
    const known = this.#activeUnderKey.get(key);
    if (known !== undefined) return known;
    const row = this.#session.connection.get(
      `select count(*) as active from (
         select 1 from escapement_active
         where ns = ? and concurrency_key = ? and concurrency_key is not null and relayed = 0 limit +?)`,
      this.#session.ns,
      key,
      this.#highestConcurrency,
    );
    const active = numberOf(row?.["active"]);
    this.#activeUnderKey.set(key, active);
    return active;
  }

  #windowOpensAt(kind: "queue" | "key", key: string, rate: RateLimit | null): number {
    const { now } = this.#session;
    return rate === null ? now : windowOpensAt(this.#window(kind, key), rate, now);
  }

  #countInWindow(kind: "queue" | "key", key: string, rate: RateLimit | null): void {
    if (rate === null) return;
    const counted = countInWindow(this.#window(kind, key), rate, this.#session.now);
    this.#windows.set(`${kind} ${key}`, { ...counted, changed: true });
  }

  #window(kind: "queue" | "key", key: string): RateWindow | undefined {
    const { connection, ns } = this.#session;
    const name = `${kind} ${key}`;
    if (!this.#windows.has(name)) {
      const row = connection.get(
        "select started_at, used, per_ms from escapement_windows where ns = ? and kind = ? and key = ?",
        ns,
        kind,
        key,
      );
      if (row === undefined) return undefined;
      this.#windows.set(name, {
        startedAt: numberOf(row["started_at"]),
        used: numberOf(row["used"]),
        perMs: numberOf(row["per_ms"]),
        changed: false,
      });
    }
    return this.#windows.get(name);
  }
}

function bump(counts: Map<string, number>, key: string, before: number): void {
  counts.set(key, before + 1);
}

function readQueues({ connection, ns }: Session): ReadonlyMap<string, QueueState> {
  const rows = connection.all(
    "select queue, paused, concurrency, rate_limit, rate_per_ms from escapement_queues where ns = ?",
    ns,
  );
  return new Map(
    rows.map((row) => {
      const limit = numberOrNull(row["rate_limit"]);
      const perMs = numberOrNull(row["rate_per_ms"]);
      return [
        textOf(row["queue"]),
        {
          paused: row["paused"] !== 0,
          concurrency: numberOrNull(row["concurrency"]),
          rate: limit === null || perMs === null ? null : { limit, perMs },
        },
      ];
    }),
  );
}
