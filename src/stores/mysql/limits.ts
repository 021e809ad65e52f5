import type { ClaimName, ClaimParams, RateLimit } from "../../store.ts";
import { keyOfLane, laneOfKey } from "./jobs.ts";
import { numberOf, textOf } from "./rows.ts";
import type { Session } from "./session.ts";
import { join, sql } from "./sql.ts";

/** What decides whether a due job may be claimed now. */
export interface Limited {
  readonly queue: string;
  readonly name: string;
  readonly concurrencyKey: string | null;
  readonly rateKey: string | null;
}

interface RateWindow {
  readonly startedAt: number;
  readonly used: number;
  readonly perMs: number;
  readonly changed: boolean;
}

/**
 * The limits that stand between one claimer and the due jobs. Active jobs are counted from an index when a limit asks for it, never
 * kept as numbers that could drift; what this claim takes is added on top. What it will be asked must be loaded before.
 */
export class Limits {
  readonly #session: Session;
  readonly #names: ReadonlyMap<string, ClaimName>;
  readonly #asked: ReadonlySet<string> | null;
  readonly #activeInQueue = new Map<string, number>();
  readonly #activeUnderKey = new Map<string, number>();
  readonly #windows = new Map<string, RateWindow>();

  constructor(session: Session, params: ClaimParams) {
    this.#session = session;
    this.#names = new Map(params.names.map((name) => [name.name, name]));
    this.#asked = params.queues === null ? null : new Set(askedQueues(params.queues));
  }

  asksFor(queue: string): boolean {
    return this.#asked === null || this.#asked.has(queue);
  }

  /** Whether the claimer asks for jobs of this queue, and it is not paused. */
  looksInto(queue: string): boolean {
    return this.asksFor(queue) && !this.#session.queues.of(queue).paused;
  }

  runs(name: string): boolean {
    return this.#names.has(name);
  }

  /** How many jobs with one key may be active; infinity where the definition sets no limit. */
  keyConcurrency(name: string): number {
    return this.#names.get(name)?.concurrency ?? Number.POSITIVE_INFINITY;
  }

  /** Reads what the limits of these queues are measured by. */
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

  /** Reads what the limits of these keys are measured by. */
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

  /** Counts the active jobs of lanes that a concurrencyKey made. */
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

  /** When a due job may go: now, at the end of a rate window, or infinity where time alone opens nothing. */
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
    if (rate === null) return now;
    const window = this.#openWindow(kind, key, rate);
    return window === undefined || window.used < rate.limit ? now : window.startedAt + rate.perMs;
  }

  #countInWindow(kind: "queue" | "key", key: string, rate: RateLimit | null): void {
    if (rate === null) return;
    const window = this.#openWindow(kind, key, rate) ?? { startedAt: this.#session.now, used: 0 };
    this.#windows.set(`${kind} ${key}`, {
      startedAt: window.startedAt,
      used: window.used + 1,
      perMs: rate.perMs,
      changed: true,
    });
  }

  /** The window that is open now. One from the future is the trace of a clock that was set back. */
  #openWindow(kind: "queue" | "key", key: string, rate: RateLimit): RateWindow | undefined {
    const { now } = this.#session;
    const window = this.#windows.get(`${kind} ${key}`);
    if (window === undefined || now < window.startedAt || now >= window.startedAt + rate.perMs)
      return undefined;
    return window;
  }
}

function bump(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** Queues of which the claimer wants at least one job. */
function askedQueues(queues: NonNullable<ClaimParams["queues"]>): string[] {
  return queues.filter(({ limit }) => limit > 0).map(({ queue }) => queue);
}
