import type { Clock } from "../clock.ts";
import { Wakeup } from "../runtime/wakeup.ts";
import type { DueJob, DuePlace, PartitionDue } from "../store/partitions.ts";
import type { Store } from "../store/store.ts";
import { type Age, ageAt, freshMs, ReadPace, StoreTime } from "./pacing.ts";

export interface ReaderParts {
  readonly store: Store;
  readonly partition: number;
  readonly clock: Clock;
  readonly pollMs: number;
  /** How many jobs one read brings. */
  readonly pageSize: number;
  /** Whether this process could publish the job now: its route is known and reachable, its queue not paused. */
  isPublishable(job: DueJob, nowMs: number): boolean;
  /** Already named, or being named. */
  isNamed(id: string): boolean;
  onRead(): void;
  onError(error: unknown): void;
}

/** While a backlog drains, this part of a page is read again from its head. */
const headPart = 1 / 10;
/** How many pages of jobs that cannot be published one read skips. */
const maxPages = 8;

/** What {@link Reader} found on one page or several. */
interface Pages {
  /** Those that can be published. */
  readonly jobs: DueJob[];
  readonly last: DuePlace | null;
  /** There may be more behind the last. */
  readonly isFull: boolean;
  readonly nextAt: Date | null;
  /** Nothing up to here could be published; null when the first page had something. */
  readonly skippedTo: DuePlace | null;
}

/**
 * Reads ahead what its partition will publish, and holds it until it is named. Behind a page full of backlog it reads
 * fresh jobs separately, so neither waits for the other. It skips pages full of jobs that cannot be published now, and
 * reads them again after a while.
 */
export class Reader {
  readonly #parts: ReaderParts;
  readonly #wakeup: Wakeup;
  readonly #pace: ReadPace;
  readonly time = new StoreTime();
  /** By their time. */
  #jobs: DueJob[] = [];
  /** There is more behind this place. */
  #readTo: DuePlace | null = null;
  #wantsMore = false;
  #stopped = false;
  /** Up to here nothing could be published, and it is not read again before {@link #rereadAtMs}. */
  #skippedTo: DuePlace | null = null;
  #skippingSinceMs = 0;
  #rereadAtMs = Number.POSITIVE_INFINITY;
  #withheld = 0;

  constructor(parts: ReaderParts) {
    this.#parts = parts;
    this.#wakeup = new Wakeup(parts.clock);
    this.#pace = new ReadPace(parts.partition, parts.pollMs);
  }

  async run(): Promise<void> {
    const { clock, pollMs, onError, onRead } = this.#parts;
    while (!this.#stopped) {
      const waitMs = this.#pace.waitMs(clock.monotonic());
      if (waitMs > 0 && !this.#wantsMore) {
        await this.#wakeup.wait(Math.min(waitMs, pollMs));
        continue;
      }
      try {
        if (waitMs > 0) await this.#readNextPage();
        else await this.#readAgain();
        onRead();
      } catch (error) {
        this.#wantsMore = false;
        this.#pace.failed(clock.monotonic());
        onError(error);
      }
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#wakeup.wake();
  }

  /** Something may have become due. */
  readSoon(): void {
    this.#pace.hint();
    this.#wakeup.wake();
  }

  /** Jobs that could not be published may be publishable now. */
  rereadSkipped(): void {
    this.#skippedTo = null;
    this.readSoon();
  }

  /** The store's clock, a lower bound. */
  get now(): number {
    return this.time.atLeast(this.#parts.clock.monotonic());
  }

  /** How many jobs in the store's answers could not be published. */
  get withheld(): number {
    return this.#withheld;
  }

  /** The time of the oldest job here. */
  get oldestAt(): Date | null {
    return this.#jobs[0]?.runAt ?? null;
  }

  get hasBacklog(): boolean {
    const { oldestAt } = this;
    return oldestAt !== null && ageAt(oldestAt, this.now) === "backlog";
  }

  /** How many of the jobs here are due within this time. */
  dueWithin(ms: number): number {
    return firstFrom(this.#jobs, Math.floor(this.now + ms) + 1);
  }

  /** On the monotonic clock: when the next job here is due; null when all are, or there are none. */
  get nextDueAtMs(): number | null {
    const next = this.#jobs[this.dueWithin(0)];
    return next === undefined ? null : this.time.reachedAtMs(next.runAt);
  }

  /**
   * Takes out jobs that are due within `aheadMs`, fresh ones first. Those that `admit` refuses stay; after "full" it is
   * not asked about others of that age.
   */
  take(aheadMs: number, admit: (job: DueJob, age: Age) => boolean | "full"): DueJob[] {
    const jobs = this.#jobs;
    const fresh = firstFrom(jobs, this.now - freshMs);
    const taken = new Set<DueJob>();
    const takeFrom = (candidates: readonly DueJob[], age: Age): void => {
      for (const job of candidates) {
        const answer = admit(job, age);
        if (answer === "full") return;
        if (answer) taken.add(job);
      }
    };
    takeFrom(jobs.slice(fresh, this.dueWithin(aheadMs)), "fresh");
    takeFrom(jobs.slice(0, fresh), "backlog");
    if (taken.size === 0) return [];
    this.#jobs = jobs.filter((job) => !taken.has(job));
    if (this.#readTo !== null && this.#jobs.length < this.#parts.pageSize / 2) {
      this.#wantsMore = true;
      this.#wakeup.wake();
    }
    return [...taken];
  }

  /** The next page of a backlog. */
  async #readNextPage(): Promise<void> {
    this.#wantsMore = false;
    const page = await this.#readPages(this.#readTo);
    this.#readTo = page.isFull ? page.last : null;
    this.#merge(page.jobs);
    if (!page.isFull) this.#planNext(page.nextAt);
  }

  async #readAgain(): Promise<void> {
    const { clock } = this.#parts;
    this.#pace.begin(clock.monotonic());
    if (this.#readTo === null || this.#jobs.length === 0) await this.#readFromStart();
    else await this.#readBesideBacklog();
    this.#pace.end(clock.monotonic());
  }

  /** In the middle of a backlog only its head, where late jobs appear, and fresh jobs are read again. */
  async #readBesideBacklog(): Promise<void> {
    const head = await this.#readPage(this.#skippedTo, Math.ceil(this.#parts.pageSize * headPart));
    const fresh = await this.#readPages(this.#freshFrom);
    this.#merge([...head.publishable, ...fresh.jobs]);
    this.#planNext(fresh.isFull ? null : fresh.nextAt);
  }

  async #readFromStart(): Promise<void> {
    const { clock } = this.#parts;
    this.#wantsMore = false;
    if (clock.monotonic() >= this.#rereadAtMs) {
      this.#skippedTo = null;
      this.#rereadAtMs = Number.POSITIVE_INFINITY;
    }
    this.#withheld = 0;
    if (this.#skippedTo === null) this.#skippingSinceMs = clock.monotonic();
    const main = await this.#readPages(this.#skippedTo);
    const isSkipping = main.isFull && main.jobs.length === 0;
    this.#skippedTo = main.skippedTo ?? this.#skippedTo;
    this.#planReread(isSkipping);
    const freshFrom = this.#freshFrom;
    const isBacklogged = main.isFull && main.last !== null && main.last.runAt < freshFrom.runAt;
    const fresh = isBacklogged ? await this.#readPages(freshFrom) : null;
    this.#readTo = main.isFull ? main.last : null;
    // A read that was sent before a checkpoint may show what that checkpoint has named.
    this.#jobs = [...main.jobs, ...(fresh?.jobs ?? [])].filter(({ id }) => !this.#parts.isNamed(id));
    this.#planNext(isBacklogged ? (fresh?.nextAt ?? null) : main.isFull ? null : main.nextAt);
    if (isSkipping) this.#pace.continueSoon(clock.monotonic());
  }

  /** The longer it takes to skip what cannot be published, the less often that is read again. */
  #planReread(isSkipping: boolean): void {
    const nowMs = this.#parts.clock.monotonic();
    if (isSkipping || this.#skippedTo === null) this.#rereadAtMs = Number.POSITIVE_INFINITY;
    else if (this.#rereadAtMs === Number.POSITIVE_INFINITY)
      this.#rereadAtMs = nowMs + Math.max(this.#parts.pollMs, 10 * (nowMs - this.#skippingSinceMs));
  }

  /** What is due before `nextAt` is here, or was left out on purpose. */
  #planNext(nextAt: Date | null): void {
    if (nextAt !== null) this.#pace.nextDueAt(this.time.reachedAtMs(nextAt));
  }

  /** What was just read replaces what was here. */
  #merge(jobs: readonly DueJob[]): void {
    const byId = new Map([...this.#jobs, ...jobs].map((job) => [job.id, job]));
    this.#jobs = [...byId.values()]
      .filter(({ id }) => !this.#parts.isNamed(id))
      .sort((a, b) => a.runAt.getTime() - b.runAt.getTime());
  }

  get #freshFrom(): DuePlace {
    return { runAt: new Date(this.now - freshMs), order: 0 };
  }

  /** Reads until there is half a page of jobs that can be published, nothing more, or enough pages. */
  async #readPages(from: DuePlace | null): Promise<Pages> {
    const { pageSize } = this.#parts;
    const jobs: DueJob[] = [];
    let after = from;
    let skippedTo: DuePlace | null = null;
    for (let page = 1; ; page += 1) {
      const { due, publishable } = await this.#readPage(after, pageSize);
      jobs.push(...publishable);
      const isFull = due.jobs.length >= pageSize;
      if (isFull && jobs.length === 0) skippedTo = due.last;
      if (!isFull || jobs.length >= pageSize / 2 || page >= maxPages) {
        return { jobs, last: due.last, isFull, nextAt: due.nextAt, skippedTo };
      }
      after = due.last;
    }
  }

  async #readPage(
    after: DuePlace | null,
    limit: number,
  ): Promise<{ due: PartitionDue; publishable: DueJob[] }> {
    const { store, partition, clock, isPublishable } = this.#parts;
    const due = await store.partitionDue({ partition, aheadMs: this.#pace.aheadMs, limit, after });
    const nowMs = clock.monotonic();
    this.time.update(due.now, nowMs);
    const publishable = due.jobs.filter((job) => isPublishable(job, nowMs));
    this.#withheld += due.jobs.length - publishable.length;
    return { due, publishable };
  }
}

/** The index of the first job that is not due before this instant. Instants are whole milliseconds. */
function firstFrom(jobs: readonly DueJob[], instant: number): number {
  let low = 0;
  let high = jobs.length;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if ((jobs[middle]?.runAt.getTime() ?? 0) < instant) low = middle + 1;
    else high = middle;
  }
  return low;
}
