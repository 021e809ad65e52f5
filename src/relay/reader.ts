import type { Clock } from "../clock.ts";
import type { DuePlace, PartitionDue, Store } from "../store.ts";
import { Wakeup } from "../wakeup.ts";
import { StoreTime } from "./store-time.ts";

export type DueJob = PartitionDue["jobs"][number];
/** `fresh`: due just now, or soon. `backlog`: due for more than {@link freshMs}. */
export type Lane = "fresh" | "backlog";

export interface ReaderParts {
  readonly store: Store;
  readonly partition: number;
  readonly clock: Clock;
  readonly pollMs: number;
  /** Whether a job could be named now as far as this process is concerned: its route known and open, its queue not paused. */
  mayGo(job: DueJob): boolean;
  /** Already named, or being named. */
  isTaken(id: string): boolean;
  onRead(): void;
  onError(error: unknown): void;
}

/** What has been due for longer is a backlog. */
const freshMs = 1_000;
/** How many jobs one read brings. */
const pageSize = 1_000;
/** How many pages of jobs that cannot go one look passes over. */
const maxPages = 8;
/** How soon after a read another one may follow, when notices ask for it. */
const noticeGapMs = 10;
/** How soon after a read that failed. */
const afterErrorMs = 500;

/**
 * Reads ahead what its partition will fire, and holds it until it is due. Behind a page full of backlog it reads what is fresh by itself, so
 * that neither waits for the other; over pages full of jobs that cannot go now it steps, and looks at them again after a while.
 */
export class Reader {
  readonly #parts: ReaderParts;
  readonly #wakeup: Wakeup;
  readonly time = new StoreTime();
  #jobs: DueJob[] = [];
  /** There is more behind what was read. */
  #hasMore = false;
  #stopped = false;
  #readAtMs = Number.NEGATIVE_INFINITY;
  /** A storm of notices keeps the store busy with reads for a third of the time at the most. */
  #gapMs = noticeGapMs;
  /** On the monotonic clock. */
  #nextReadMs = Number.NEGATIVE_INFINITY;
  /** Up to here nothing could go, and it is not looked at again before {@link #lookBackMs}. */
  #passed: DuePlace | null = null;
  #passingSinceMs = 0;
  #lookBackMs = Number.POSITIVE_INFINITY;
  /** How many jobs in the store's answers could not go. */
  #withheld = 0;

  constructor(parts: ReaderParts) {
    this.#parts = parts;
    this.#wakeup = new Wakeup(parts.clock);
  }

  async run(): Promise<void> {
    const { clock, pollMs, onError, onRead } = this.#parts;
    while (!this.#stopped) {
      const waitMs = this.#nextReadMs - clock.monotonic();
      if (waitMs > 0) {
        await this.#wakeup.wait(Math.min(waitMs, pollMs));
        continue;
      }
      this.#readAtMs = clock.monotonic();
      this.#nextReadMs = this.#readAtMs + pollMs;
      try {
        await this.#read();
        this.#gapMs = Math.max(noticeGapMs, 3 * (clock.monotonic() - this.#readAtMs));
        onRead();
      } catch (error) {
        this.#nextReadMs = Math.min(this.#nextReadMs, clock.monotonic() + afterErrorMs);
        onError(error);
      }
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#wakeup.wake();
  }

  /** Something may have become due: look again, but not in a tight circle. */
  soon(): void {
    this.#nextReadMs = Math.min(this.#nextReadMs, this.#readAtMs + this.#gapMs);
    this.#wakeup.wake();
  }

  /** What could not go may go now. */
  again(): void {
    this.#passed = null;
    this.soon();
  }

  laneOf(job: DueJob): Lane {
    const now = this.time.atLeast(this.#parts.clock.monotonic());
    return job.runAt.getTime() < now - freshMs ? "backlog" : "fresh";
  }

  /** Takes due jobs out, the fresh ones first; those that `admit` refuses stay. */
  take(admit: (job: DueJob, lane: Lane) => boolean): DueJob[] {
    const now = this.time.atLeast(this.#parts.clock.monotonic());
    const taken = new Set<DueJob>();
    for (const lane of ["fresh", "backlog"] as const) {
      for (const job of this.#jobs) {
        if (job.runAt.getTime() > now) break;
        if (this.laneOf(job) === lane && admit(job, lane)) taken.add(job);
      }
    }
    if (taken.size > 0) this.#jobs = this.#jobs.filter((job) => !taken.has(job));
    if (taken.size > 0 && this.#hasMore && this.#jobs.length < pageSize / 2) {
      this.#nextReadMs = Number.NEGATIVE_INFINITY;
      this.#wakeup.wake();
    }
    return [...taken];
  }

  /** Whether there is backlog in hand. */
  get hasBacklog(): boolean {
    const first = this.#jobs[0];
    return first !== undefined && this.laneOf(first) === "backlog";
  }

  /** The oldest that is in hand. */
  get oldestAt(): Date | null {
    return this.#jobs[0]?.runAt ?? null;
  }

  get withheld(): number {
    return this.#withheld;
  }

  /** On the monotonic clock: when the next of the jobs in hand is due; null when all are, or there are none. */
  nextDueMs(): number | null {
    const now = this.time.atLeast(this.#parts.clock.monotonic());
    const next = this.#jobs.find(({ runAt }) => runAt.getTime() > now);
    return next === undefined ? null : this.time.reachedAtMs(next.runAt);
  }

  async #read(): Promise<void> {
    const { clock } = this.#parts;
    if (clock.monotonic() >= this.#lookBackMs) this.#passed = null;
    this.#withheld = 0;
    if (this.#passed === null) this.#passingSinceMs = clock.monotonic();
    const main = await this.#pages(this.#passed);
    this.#passed = main.passed ?? this.#passed;
    const isPassing = main.isFull && main.jobs.length === 0;
    // The longer it takes to step over what cannot go, the rarer it is done.
    const passingMs = Math.max(this.#parts.pollMs, 10 * (clock.monotonic() - this.#passingSinceMs));
    if (isPassing || this.#passed === null) this.#lookBackMs = Number.POSITIVE_INFINITY;
    else if (this.#lookBackMs === Number.POSITIVE_INFINITY) this.#lookBackMs = clock.monotonic() + passingMs;
    const freshFrom = new Date(this.time.atLeast(clock.monotonic()) - freshMs);
    const isBacklogged = main.isFull && main.last !== null && main.last.runAt < freshFrom;
    const fresh = isBacklogged ? await this.#pages({ runAt: freshFrom, order: 0 }) : null;
    this.#hasMore = main.isFull;
    // A read that was sent before a naming may show what has been named since.
    this.#jobs = [...main.jobs, ...(fresh?.jobs ?? [])].filter(({ id }) => !this.#parts.isTaken(id));
    this.#schedule(isBacklogged ? (fresh?.nextAt ?? null) : main.isFull ? null : main.nextAt);
    if (isPassing) this.#nextReadMs = Math.min(this.#nextReadMs, clock.monotonic() + noticeGapMs);
  }

  #schedule(nextAt: Date | null): void {
    if (nextAt === null) return;
    this.#nextReadMs = Math.min(this.#nextReadMs, this.time.reachedAtMs(nextAt) - this.#aheadMs);
    // What is due by then is in hand or was left out on purpose; only what lies ahead is worth a wake-up.
    this.#nextReadMs = Math.max(this.#nextReadMs, this.#readAtMs + noticeGapMs);
  }

  get #aheadMs(): number {
    return Math.min(this.#parts.pollMs, 1_000);
  }

  /** Reads on until there is a page's worth of jobs that can go, or enough pages were looked at. */
  async #pages(from: DuePlace | null): Promise<{
    readonly jobs: DueJob[];
    readonly last: DuePlace | null;
    readonly isFull: boolean;
    readonly nextAt: Date | null;
    /** Up to where nothing could go; null when the first page had something. */
    readonly passed: DuePlace | null;
  }> {
    const { store, partition, clock, mayGo } = this.#parts;
    const jobs: DueJob[] = [];
    let after = from;
    let passed: DuePlace | null = null;
    for (let page = 1; ; page += 1) {
      const due = await store.partitionDue({ partition, aheadMs: this.#aheadMs, limit: pageSize, after });
      this.time.heard(due.now, clock.monotonic());
      const going = due.jobs.filter(mayGo);
      this.#withheld += due.jobs.length - going.length;
      jobs.push(...going);
      const isFull = due.jobs.length >= pageSize;
      if (isFull && jobs.length === 0) passed = due.last;
      if (!isFull || jobs.length >= pageSize / 2 || page >= maxPages) {
        return { jobs, last: due.last, isFull, nextAt: due.nextAt, passed };
      }
      after = due.last;
    }
  }
}
