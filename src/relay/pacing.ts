import type { Clock } from "../clock.ts";
import type { ClaimedJob } from "../store/claims.ts";

/** When a relay reads, names and publishes. Every instant is on the monotonic clock unless it is a Date. */

/** How long before their time jobs are named, so only the publish is left to do then. */
export const aheadMs = 160;
/** Jobs are published at multiples of this, together with those of other partitions. */
const publishEveryMs = 20;
/**
 * A small checkpoint waits for the next multiple of this: a trip costs about as much for ten jobs as for one. Several
 * partitions of a process share these moments, so a store can write their checkpoints together.
 */
const checkpointEveryMs = 20;
/**
 * The longest interval while something is late. A store that is slow gets fewer and larger checkpoints, which cost it
 * less.
 */
const longestCheckpointEveryMs = 50;
/** Into how many groups partitions are spread: all at once they would block the store, or this process. */
const checkpointGroups = 4;
/** How soon after a read another may follow. */
const readGapMs = 10;
/** How soon after a failed read another may follow. */
const readAfterErrorMs = 500;
/** Its multiples are spread evenly between whole numbers, however many there are. */
const goldenRatio = 0.618_034;
/** What has been due for longer is a backlog. */
export const freshMs = 1_000;
/** A second's jobs of a backlog go in this many portions, so a trip to the store is worth it. */
const portionsPerSecond = 10;

/** `fresh`: due soon, or for less than a second. `backlog`: due for longer. */
export type Age = "fresh" | "backlog";

export function ageAt(runAt: Date, now: number): Age {
  return runAt.getTime() < now - freshMs ? "backlog" : "fresh";
}

/**
 * A lower bound of the store's clock, from its latest answer. The answer was made before it arrived, so by now the
 * store's time is at least what it said plus what has passed here since.
 */
export class StoreTime {
  #offsetMs: number | null = null;

  /** The latest answer counts: a store's clock may be set back, and then older ones mislead. */
  update(now: Date, receivedAtMs: number): void {
    this.#offsetMs = now.getTime() - receivedAtMs;
  }

  /** The earliest that the store's time can be at this moment. */
  atLeast(monotonicMs: number): number {
    return this.#offsetMs === null ? Number.NEGATIVE_INFINITY : monotonicMs + this.#offsetMs;
  }

  /** From when on the store's time has certainly reached this instant. */
  reachedAtMs(instant: Date): number {
    return this.#offsetMs === null ? Number.POSITIVE_INFINITY : instant.getTime() - this.#offsetMs;
  }
}

/** When a partition writes its checkpoints. */
export class CheckpointPace {
  readonly #group: number;
  #begunAtMs = Number.NEGATIVE_INFINITY;
  /** How long the last one took. */
  #tookMs = 0;

  constructor(partition: number) {
    this.#group = (partition % checkpointGroups) / checkpointGroups;
  }

  begin(nowMs: number): void {
    this.#begunAtMs = nowMs;
  }

  end(nowMs: number): void {
    this.#tookMs = nowMs - this.#begunAtMs;
  }

  /** How long until the next; 0 after a rest. While nothing is late, what comes next is not due for a while. */
  waitMs(nowMs: number, isLate: boolean): number {
    const everyMs = isLate
      ? Math.min(longestCheckpointEveryMs, Math.max(checkpointEveryMs, 2 * this.#tookMs))
      : aheadMs / 2;
    const offsetMs = this.#group * everyMs;
    const nextMs = (Math.floor((this.#begunAtMs - offsetMs) / everyMs) + 1) * everyMs + offsetMs;
    return Math.max(0, nextMs - nowMs);
  }
}

/** When a partition reads what is due. */
export class ReadPace {
  readonly #pollMs: number;
  readonly #offset: number;
  #begunAtMs = Number.NEGATIVE_INFINITY;
  /** A storm of notices keeps the store busy with reads for at most a third of the time. */
  #gapMs = readGapMs;
  #nextMs = Number.NEGATIVE_INFINITY;

  constructor(partition: number, pollMs: number) {
    this.#pollMs = pollMs;
    this.#offset = (partition * goldenRatio) % 1;
  }

  /** How far ahead a read looks. */
  get aheadMs(): number {
    return Math.min(this.#pollMs, 1_000);
  }

  waitMs(nowMs: number): number {
    return this.#nextMs - nowMs;
  }

  begin(nowMs: number): void {
    this.#begunAtMs = nowMs;
    this.#nextMs = nowMs + this.#pollMs;
  }

  end(nowMs: number): void {
    this.#gapMs = Math.max(readGapMs, 3 * (nowMs - this.#begunAtMs));
  }

  failed(nowMs: number): void {
    this.#noLaterThan(nowMs + readAfterErrorMs);
  }

  /** Something may have become due: read soon, but not in a tight loop. */
  hint(): void {
    this.#noLaterThan(this.#begunAtMs + this.#gapMs);
  }

  /** There is more to read right away. */
  continueSoon(nowMs: number): void {
    this.#noLaterThan(nowMs + readGapMs);
  }

  /**
   * The next job that no read has returned is due then. The read comes halfway there, since where jobs stand close
   * together the next is always just behind what was read; and not at the same moment as those of other partitions.
   */
  nextDueAt(dueAtMs: number): void {
    const everyMs = this.aheadMs / 2;
    const offsetMs = this.#offset * everyMs;
    const atMs = Math.round((dueAtMs - everyMs - offsetMs) / everyMs) * everyMs + offsetMs;
    this.#noLaterThan(atMs);
    this.#nextMs = Math.max(this.#nextMs, this.#begunAtMs + readGapMs);
  }

  #noLaterThan(atMs: number): void {
    this.#nextMs = Math.min(this.#nextMs, atMs);
  }
}

/** How many jobs of a backlog may go per second, over all partitions of this process. */
export class BacklogRate {
  readonly #perSecond: number;
  readonly #portion: number;
  #left: number;
  #atMs: number;
  #isRefilling = false;

  constructor(perSecond: number, nowMs: number) {
    this.#perSecond = perSecond;
    this.#portion = Math.max(1, perSecond / portionsPerSecond);
    this.#left = this.#portion;
    this.#atMs = nowMs;
  }

  /** Whether one more may go now. */
  take(nowMs: number): boolean {
    if (this.#perSecond === Number.POSITIVE_INFINITY) return true;
    const earned = ((nowMs - this.#atMs) / 1_000) * this.#perSecond;
    // Time that was not used is not made up for.
    this.#left = Math.min(this.#left + earned, 2 * this.#portion);
    this.#atMs = nowMs;
    if (this.#left < (this.#isRefilling ? this.#portion : 1)) {
      this.#isRefilling = true;
      return false;
    }
    this.#isRefilling = false;
    this.#left -= 1;
    return true;
  }

  /** How long until the next portion may go; 0 when it may go now. */
  waitMs(): number {
    return this.#isRefilling ? ((this.#portion - this.#left) / this.#perSecond) * 1_000 : 0;
  }
}

export interface DueTimerParts<T> {
  readonly clock: Clock;
  readonly time: StoreTime;
  onDue(items: readonly T[]): void;
}

/** Holds named jobs until they are due. */
export class DueTimer<T extends { readonly job: Pick<ClaimedJob, "id" | "runAt"> }> {
  readonly #parts: DueTimerParts<T>;
  /** By their time. */
  #items: T[] = [];
  #cancel: () => void = () => {};

  constructor(parts: DueTimerParts<T>) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#items.length;
  }

  add(items: readonly T[]): void {
    if (items.length === 0) return;
    this.#items = [...this.#items, ...items].sort((a, b) => a.job.runAt.getTime() - b.job.runAt.getTime());
    this.check();
  }

  /** Releases jobs that are due, and sets the timer for the next. To be called whenever the store's time is updated. */
  check(): void {
    const { clock, time, onDue } = this.#parts;
    this.#cancel();
    const nowMs = clock.monotonic();
    const now = time.atLeast(nowMs);
    const later = this.#items.findIndex(({ job }) => job.runAt.getTime() > now);
    const due = this.#items.splice(0, later < 0 ? this.#items.length : later);
    const [next] = this.#items;
    if (next !== undefined) {
      const atMs = Math.ceil(time.reachedAtMs(next.job.runAt) / publishEveryMs) * publishEveryMs;
      // Infinite while the store's time is unknown.
      if (atMs < Number.POSITIVE_INFINITY) this.#cancel = clock.after(atMs - nowMs, () => this.check());
    }
    if (due.length > 0) onDue(due);
  }

  /** Takes out the jobs with these ids, if they are still here. */
  remove(ids: ReadonlySet<string>): T[] {
    const removed = this.#items.filter(({ job }) => ids.has(job.id));
    if (removed.length > 0) this.#items = this.#items.filter(({ job }) => !ids.has(job.id));
    return removed;
  }

  /** Takes out all jobs. */
  clear(): T[] {
    this.#cancel();
    return this.#items.splice(0);
  }
}
