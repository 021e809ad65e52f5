import type { Clock } from "../clock.ts";
import type { DueJob, DuePlace, PartitionDue, Store } from "../store.ts";
import { Wakeup } from "../wakeup.ts";
import { StoreTime } from "./store-time.ts";

/** `fresh`: due just now, or soon. `backlog`: due for more than {@link freshMs}. */
export type Lane = "fresh" | "backlog";

export interface ReaderParts {
  readonly store: Store;
  readonly partition: number;
  readonly clock: Clock;
  readonly pollMs: number;
  /** How many jobs one read brings. */
  readonly pageSize: number;
  /** Whether a job could be named now as far as this process is concerned: its route known and open, its queue not paused. */
  mayGo(job: DueJob, nowMs: number): boolean;
  /** Already named, or being named. */
  isTaken(id: string): boolean;
  onRead(): void;
  onError(error: unknown): void;
}

/** What has been due for longer is a backlog. */
const freshMs = 1_000;
/** How many of a backlog's first are looked at again while it drains: this part of a page. */
const headPart = 1 / 10;
/** How many pages of jobs that cannot go one look passes over. */
const maxPages = 8;
/** How soon after a read another one may follow, when notices ask for it. */
const noticeGapMs = 10;
/** Its multiples lie evenly between whole numbers, however many there are. */
const goldenRatio = 0.618_034;
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
  /** There is more behind what was read: here. */
  #last: DuePlace | null = null;
  #isHungry = false;
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
      if (waitMs > 0 && !this.#isHungry) {
        await this.#wakeup.wait(Math.min(waitMs, pollMs));
        continue;
      }
      try {
        if (waitMs > 0) await this.#readOn();
        else await this.#look();
        onRead();
      } catch (error) {
        this.#isHungry = false;
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

  /** The store's clock, a lower bound. */
  get now(): number {
    return this.time.atLeast(this.#parts.clock.monotonic());
  }

  /**
   * Takes jobs out that are due within `aheadMs`, the fresh ones first. Those that `admit` refuses stay; when it says "full" nothing more
   * is asked.
   */
  take(aheadMs: number, admit: (job: DueJob, lane: Lane) => boolean | "full"): DueJob[] {
    const { now } = this;
    const jobs = this.#jobs;
    const [fresh, later] = [firstFrom(jobs, now - freshMs), firstFrom(jobs, Math.floor(now + aheadMs) + 1)];
    const taken = new Set<DueJob>();
    const look = (from: number, to: number, lane: Lane): void => {
      for (let index = from; index < to; index += 1) {
        const job = jobs[index];
        const answer = job !== undefined && admit(job, lane);
        if (answer === "full") return;
        if (answer && job !== undefined) taken.add(job);
      }
    };
    look(fresh, later, "fresh");
    look(0, fresh, "backlog");
    if (taken.size === 0) return [];
    this.#jobs = jobs.filter((job) => !taken.has(job));
    if (this.#last !== null && this.#jobs.length < this.#parts.pageSize / 2) {
      this.#isHungry = true;
      this.#wakeup.wake();
    }
    return [...taken];
  }

  /** Whether there is backlog in hand. */
  get hasBacklog(): boolean {
    const first = this.#jobs[0];
    return first !== undefined && laneAt(first.runAt, this.now) === "backlog";
  }

  /** How many of the jobs in hand are due within so long. */
  due(withinMs: number): number {
    return firstFrom(this.#jobs, Math.floor(this.now + withinMs) + 1);
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
    const next = this.#jobs[firstFrom(this.#jobs, Math.floor(this.now) + 1)];
    return next === undefined ? null : this.time.reachedAtMs(next.runAt);
  }

  async #look(): Promise<void> {
    const { clock, pollMs } = this.#parts;
    this.#readAtMs = clock.monotonic();
    this.#nextReadMs = this.#readAtMs + pollMs;
    if (this.#last === null || this.#jobs.length === 0) await this.#read();
    else await this.#lookBeside();
    this.#gapMs = Math.max(noticeGapMs, 3 * (clock.monotonic() - this.#readAtMs));
  }

  /** The next page of a backlog. */
  async #readOn(): Promise<void> {
    this.#isHungry = false;
    const page = await this.#pages(this.#last);
    this.#last = page.isFull ? page.last : null;
    this.#merge(page.jobs);
    if (!page.isFull) this.#schedule(page.nextAt);
  }

  /** In the middle of a backlog only its head, where late jobs come in, and what is fresh are looked at again. */
  async #lookBeside(): Promise<void> {
    const head = await this.#page(this.#passed, Math.ceil(this.#parts.pageSize * headPart));
    const fresh = await this.#pages(this.#freshFrom);
    this.#merge([...head.going, ...fresh.jobs]);
    this.#schedule(fresh.isFull ? null : fresh.nextAt);
  }

  /** What was read anew takes the place of what was in hand. */
  #merge(jobs: readonly DueJob[]): void {
    const byId = new Map([...this.#jobs, ...jobs].map((job) => [job.id, job]));
    this.#jobs = [...byId.values()]
      .filter(({ id }) => !this.#parts.isTaken(id))
      .sort((a, b) => a.runAt.getTime() - b.runAt.getTime());
  }

  get #freshFrom(): DuePlace {
    return { runAt: new Date(this.now - freshMs), order: 0 };
  }

  async #read(): Promise<void> {
    const { clock } = this.#parts;
    this.#isHungry = false;
    if (clock.monotonic() >= this.#lookBackMs) {
      this.#passed = null;
      this.#lookBackMs = Number.POSITIVE_INFINITY;
    }
    this.#withheld = 0;
    if (this.#passed === null) this.#passingSinceMs = clock.monotonic();
    const main = await this.#pages(this.#passed);
    this.#passed = main.passed ?? this.#passed;
    const isPassing = main.isFull && main.jobs.length === 0;
    // The longer it takes to step over what cannot go, the rarer it is done.
    const passingMs = Math.max(this.#parts.pollMs, 10 * (clock.monotonic() - this.#passingSinceMs));
    if (isPassing || this.#passed === null) this.#lookBackMs = Number.POSITIVE_INFINITY;
    else if (this.#lookBackMs === Number.POSITIVE_INFINITY) this.#lookBackMs = clock.monotonic() + passingMs;
    const freshFrom = this.#freshFrom;
    const isBacklogged = main.isFull && main.last !== null && main.last.runAt < freshFrom.runAt;
    const fresh = isBacklogged ? await this.#pages(freshFrom) : null;
    this.#last = main.isFull ? main.last : null;
    // A read that was sent before a naming may show what has been named since.
    this.#jobs = [...main.jobs, ...(fresh?.jobs ?? [])].filter(({ id }) => !this.#parts.isTaken(id));
    this.#schedule(isBacklogged ? (fresh?.nextAt ?? null) : main.isFull ? null : main.nextAt);
    if (isPassing) this.#nextReadMs = Math.min(this.#nextReadMs, clock.monotonic() + noticeGapMs);
  }

  #schedule(nextAt: Date | null): void {
    if (nextAt === null) return;
    // What is due by then is in hand or was left out on purpose; only what lies ahead is worth a wake-up. Halfway there: where jobs
    // stand close together, the next is always just behind what was read.
    const halfwayMs = this.time.reachedAtMs(nextAt) - this.#aheadMs / 2;
    this.#nextReadMs = Math.min(this.#nextReadMs, this.#inTurn(halfwayMs));
    this.#nextReadMs = Math.max(this.#nextReadMs, this.#readAtMs + noticeGapMs);
  }

  /** About then, and not at the same moment as the other partitions: together they would keep the store from everything else. */
  #inTurn(atMs: number): number {
    const everyMs = this.#aheadMs / 2;
    const turnMs = ((this.#parts.partition * goldenRatio) % 1) * everyMs;
    return Math.round((atMs - turnMs) / everyMs) * everyMs + turnMs;
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
    const { pageSize } = this.#parts;
    const jobs: DueJob[] = [];
    let after = from;
    let passed: DuePlace | null = null;
    for (let page = 1; ; page += 1) {
      const { due, going } = await this.#page(after, pageSize);
      jobs.push(...going);
      const isFull = due.jobs.length >= pageSize;
      if (isFull && jobs.length === 0) passed = due.last;
      if (!isFull || jobs.length >= pageSize / 2 || page >= maxPages) {
        return { jobs, last: due.last, isFull, nextAt: due.nextAt, passed };
      }
      after = due.last;
    }
  }

  async #page(after: DuePlace | null, limit: number): Promise<{ due: PartitionDue; going: DueJob[] }> {
    const { store, partition, clock, mayGo } = this.#parts;
    const due = await store.partitionDue({ partition, aheadMs: this.#aheadMs, limit, after });
    const nowMs = clock.monotonic();
    this.time.heard(due.now, nowMs);
    const going = due.jobs.filter((job) => mayGo(job, nowMs));
    this.#withheld += due.jobs.length - going.length;
    return { due, going };
  }
}

export function laneAt(runAt: Date, now: number): Lane {
  return runAt.getTime() < now - freshMs ? "backlog" : "fresh";
}

/** Where the first job stands that is not due before this instant. Instants are whole milliseconds. */
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
