import type { Clock } from "../clock.ts";
import type { ClaimedJob } from "../store.ts";
import type { StoreTime } from "./store-time.ts";

/** Jobs go at multiples of this, together with those of other partitions. */
const departMs = 20;

export interface DeparturesParts {
  readonly clock: Clock;
  readonly time: StoreTime;
  /** Their time has come. */
  onDue(jobs: readonly ClaimedJob[]): void;
}

/** Jobs that are named, and wait for their time to be published. */
export class Departures {
  readonly #parts: DeparturesParts;
  /** By their time. */
  #jobs: ClaimedJob[] = [];
  #cancel: () => void = () => {};

  constructor(parts: DeparturesParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#jobs.length;
  }

  add(jobs: readonly ClaimedJob[]): void {
    if (jobs.length === 0) return;
    this.#jobs = [...this.#jobs, ...jobs].sort((a, b) => a.runAt.getTime() - b.runAt.getTime());
    this.look();
  }

  /** Lets go whose time has come, and sees to it that the others go at theirs. To be called whenever the store has told its time. */
  look(): void {
    const { clock, time, onDue } = this.#parts;
    this.#cancel();
    const nowMs = clock.monotonic();
    const now = time.atLeast(nowMs);
    const later = this.#jobs.findIndex(({ runAt }) => runAt.getTime() > now);
    const due = this.#jobs.splice(0, later < 0 ? this.#jobs.length : later);
    const [next] = this.#jobs;
    if (next !== undefined) {
      const atMs = Math.ceil(time.reachedAtMs(next.runAt) / departMs) * departMs;
      // While the store's time is unknown, nobody knows when that is.
      if (atMs < Number.POSITIVE_INFINITY) this.#cancel = clock.after(atMs - nowMs, () => this.look());
    }
    if (due.length > 0) onDue(due);
  }

  /** Takes out those that are meant, if they are there. */
  remove(ids: ReadonlySet<string>): ClaimedJob[] {
    const removed = this.#jobs.filter(({ id }) => ids.has(id));
    if (removed.length > 0) this.#jobs = this.#jobs.filter(({ id }) => !ids.has(id));
    return removed;
  }

  /** Takes out all. */
  clear(): ClaimedJob[] {
    this.#cancel();
    return this.#jobs.splice(0);
  }
}
