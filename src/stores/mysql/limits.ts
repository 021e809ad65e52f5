import type { ClaimName, ClaimParams, RateLimit } from "../../store/claims.ts";
import type { Limited } from "../choose.ts";
import { keyOfLane, laneOfKey } from "../lane.ts";
import { askedQueues, countInWindow, type RateWindow, windowOpensAt } from "../limits.ts";
import { join, sql } from "./connection/sql.ts";
import { numberOf, textOf } from "./rows.ts";
import type { Session } from "./session.ts";

interface LoadedWindow extends RateWindow {
  readonly changed: boolean;
}

/**
 * The limits between one claimer and the due jobs. Active jobs are counted from an index when a limit needs it, never
 * kept as numbers that could drift; what this claim takes is added on top. Everything it needs must be loaded first.
 */
export class Limits {
  readonly #session: Session;
  readonly #names: ReadonlyMap<string, ClaimName>;
  readonly #asked: ReadonlySet<string> | null;
  readonly #activeInQueue = new Map<string, number>();
  readonly #activeUnderKey = new Map<string, number>();
  readonly #windows = new Map<string, LoadedWindow>();

  constructor(session: Session, params: ClaimParams) {
    this.#session = session;
    this.#names = new Map(params.names.map((name) => [name.name, name]));
    this.#asked = params.queues === null ? null : new Set(askedQueues(params.queues));
  }

  asksFor(queue: string): boolean {
    return this.#asked === null || this.#asked.has(queue);
  }

  /** Whether the claimer wants jobs of this queue, and it is not paused. */
  looksInto(queue: string): boolean {
    return this.asksFor(queue) && !this.#session.queues.of(queue).paused;
  }

  isLimited(queue: string): boolean {
    return this.#session.queues.isLimited(queue);
  }

  runs(name: string): boolean {
    return this.#names.has(name);
  }

  /** How many jobs with one key may be active; infinity if the definition sets no limit. */
  keyConcurrency(name: string): number {
    return this.#names.get(name)?.concurrency ?? Number.POSITIVE_INFINITY;
  }

  /** Reads the counts and windows for the limits of these queues. */
  async loadQueues(queues: readonly string[]): Promise<void> {
    const { link, ns, lines } = this.#session;
    const limited = queues.filter((queue) => this.#session.queues.isLimited(queue));
    await Promise.all([
      ...limited.map(async (queue) => {
        const { concurrency } = this.#session.queues.of(queue);
        if (concurrency === null) return;
        const { rows } = await link.query(
          sql`select count(*) from (select 1 from escapement_jobs force index (escapement_jobs_line)
            where line = ${lines.activeOf(queue)} limit ${Math.max(1, concurrency)}) as active`,
        );
        this.#activeInQueue.set(queue, numberOf(rows[0]?.[0]));
      }),
      this.#loadWindows(
        ns,
        limited.map((key) => ({ kind: "queue", key })),
      ),
    ]);
  }

  /** Reads the counts and windows for the limits of these keys. */
  async loadKeys(jobs: readonly Limited[]): Promise<void> {
    const keys = new Set(jobs.flatMap(({ concurrencyKey }) => concurrencyKey ?? []));
    const rated = jobs.filter(({ name }) => this.#names.get(name)?.rate != null);
    const rateKeys = new Set(rated.flatMap(({ rateKey }) => rateKey ?? []));
    await Promise.all([
      this.loadActive([...keys].filter((key) => !this.#activeUnderKey.has(key)).map(laneOfKey)),
      this.#loadWindows(
        this.#session.ns,
        [...rateKeys].map((key) => ({ kind: "key", key })),
      ),
    ]);
  }

  /** Counts the active jobs of lanes that come from a concurrencyKey. */
  async loadActive(lanes: readonly string[]): Promise<void> {
    const { link, ns } = this.#session;
    if (lanes.length === 0) return;
    for (const lane of lanes) this.#activeUnderKey.set(keyOfLane(lane) ?? "", 0);
    const { rows } = await link.query(
      sql`select lane, count(*) from escapement_lane_jobs where ns = ${ns} and place = 'active' and lane in (${lanes}) group by lane`,
    );
    for (const row of rows) this.#activeUnderKey.set(keyOfLane(textOf(row[0])) ?? "", numberOf(row[1]));
  }

  async #loadWindows(
    ns: number,
    windows: readonly { readonly kind: "queue" | "key"; readonly key: string }[],
  ): Promise<void> {
    if (windows.length === 0) return;
    const wanted = windows.map(({ kind, key }) => sql`(kind = ${kind} and window_key = ${key})`);
    const { rows } = await this.#session.link.query(
      sql`select kind, window_key, started_at, used, per_ms from escapement_windows where ns = ${ns} and (${join(wanted, " or ")})`,
    );
    for (const row of rows) {
      this.#windows.set(`${textOf(row[0])} ${textOf(row[1])}`, {
        startedAt: numberOf(row[2]),
        used: numberOf(row[3]),
        perMs: numberOf(row[4]),
        changed: false,
      });
    }
  }

  /** How many more jobs with the key may become active. */
  keyRoom(concurrencyKey: string, name: string): number {
    return this.keyConcurrency(name) - (this.#activeUnderKey.get(concurrencyKey) ?? 0);
  }

  /** When a due job may go: now, at the end of a rate window, or infinity if time alone opens nothing. */
  opensAt(job: Limited): number {
    if (!this.runs(job.name) || !this.looksInto(job.queue)) return Number.POSITIVE_INFINITY;
    return Math.max(this.queueOpensAt(job.queue), this.keysOpenAt(job));
  }

  queueOpensAt(queue: string): number {
    const { concurrency, rate } = this.#session.queues.of(queue);
    if (concurrency !== null && (this.#activeInQueue.get(queue) ?? 0) >= concurrency) {
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
    bump(this.#activeInQueue, job.queue);
    if (job.concurrencyKey !== null) bump(this.#activeUnderKey, job.concurrencyKey);
    this.#countInWindow("queue", job.queue, this.#session.queues.of(job.queue).rate);
    if (job.rateKey !== null)
      this.#countInWindow("key", job.rateKey, this.#names.get(job.name)?.rate ?? null);
  }

  /** Writes the rate windows that this claim used. */
  write(): void {
    const { link, ns } = this.#session;
    for (const [name, window] of this.#windows) {
      if (!window.changed) continue;
      const space = name.indexOf(" ");
      link.write(
        sql`insert into escapement_windows (ns, kind, window_key, started_at, used, per_ms)
          values (${ns}, ${name.slice(0, space)}, ${name.slice(space + 1)}, ${window.startedAt}, ${window.used}, ${window.perMs})
          on duplicate key update started_at = values(started_at), used = values(used), per_ms = values(per_ms)`,
      );
    }
  }

  #windowOpensAt(kind: "queue" | "key", key: string, rate: RateLimit | null): number {
    const { now } = this.#session;
    return rate === null ? now : windowOpensAt(this.#windows.get(`${kind} ${key}`), rate, now);
  }

  #countInWindow(kind: "queue" | "key", key: string, rate: RateLimit | null): void {
    if (rate === null) return;
    const name = `${kind} ${key}`;
    const counted = countInWindow(this.#windows.get(name), rate, this.#session.now);
    this.#windows.set(name, { ...counted, changed: true });
  }
}

function bump(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
