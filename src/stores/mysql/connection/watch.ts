import type { Notice } from "../../../store/notices.ts";
import { numberOf, textOf } from "../rows.ts";
import type { Answer } from "./link.ts";
import { type Sql, sql } from "./sql.ts";

/** How often it looks right after new jobs, and how seldom in the end: another process's job waits at most that long. */
const busyMs = 10;
const idleMs = 85;
const slowDown = 1.25;
/** How long it waits after the server could not be reached. */
const failedMs = 1_000;
/** How many of the newest rows it looks at. */
const most = 100;
/** Numbers are assigned before the commit, so a row may appear below one that was seen: for this long it looks there, too. */
const overtakenMs = 1_000;

interface WatchOptions {
  /** Queries in a separate transaction. */
  readonly ask: (statement: Sql) => Promise<Answer>;
  /** The number of the namespace. */
  readonly ns: () => Promise<number>;
  readonly hear: (notice: Notice) => void;
}

/**
 * MySQL does not notify of new jobs, so this asks for rows newer than the newest one known: one step at the end of the
 * primary key, which costs enqueues nothing and locks nothing. Anything else that makes a job claimable (a retry elsewhere, a redrive) is left to the poll.
 */
export class Watch {
  readonly #options: WatchOptions;
  #timer: NodeJS.Timeout | null = null;
  #isWanted = false;
  #pauseMs = busyMs;
  /** Everything up to this number was seen; null before the first look. */
  #floor: number | null = null;
  /** What was seen above it. */
  #seen: ReadonlySet<number> = new Set();
  #quietSinceMs = 0;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#isWanted) return;
    this.#isWanted = true;
    this.#pauseMs = busyMs;
    // Jobs that came in the meantime are for the new listeners to find.
    this.#floor = null;
    if (this.#timer === null) this.#wait(0);
  }

  stop(): void {
    this.#isWanted = false;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #wait(ms: number): void {
    this.#timer = setTimeout(() => void this.#look(), ms);
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    try {
      const ns = await this.#options.ns();
      if (this.#floor === null) await this.#begin();
      else await this.#lookAbove(this.#floor, ns);
    } catch {
      // It only gives hints; callers of the store see its errors themselves.
      this.#pauseMs = failedMs;
    }
    if (!this.#isWanted) return;
    this.#wait(this.#pauseMs);
    this.#pauseMs = this.#pauseMs > idleMs ? busyMs : Math.min(this.#pauseMs * slowDown, idleMs);
  }

  async #begin(): Promise<void> {
    const { rows } = await this.#options.ask(sql`select coalesce(max(seq), 0) from escapement_jobs`);
    this.#floor = numberOf(rows[0]?.[0]);
    this.#seen = new Set();
  }

  async #lookAbove(floor: number, ns: number): Promise<void> {
    const { rows } = await this.#options.ask(
      sql`select seq, ns, queue from escapement_jobs where seq > ${floor} order by seq desc limit ${most}`,
    );
    const fresh = rows.filter((row) => !this.#seen.has(numberOf(row[0])));
    const now = performance.now();
    if (fresh.length > 0) {
      this.#quietSinceMs = now;
      this.#seen = new Set(rows.map((row) => numberOf(row[0])));
    } else if (this.#seen.size > 0 && now - this.#quietSinceMs > overtakenMs) {
      this.#floor = Math.max(...this.#seen);
      this.#seen = new Set();
    }
    const queues = new Set(fresh.filter((row) => numberOf(row[1]) === ns).map((row) => textOf(row[2])));
    const isFull = fresh.length >= most;
    if (queues.size === 0 && !isFull) return;
    this.#pauseMs = busyMs;
    if (this.#isWanted) this.#options.hear({ kind: "jobs", queues: isFull ? null : [...queues] });
  }
}
