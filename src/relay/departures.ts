import type { ClaimedJob } from "../store.ts";

/** Jobs that are named, and wait for their time to be published. */
export class Departures {
  /** By their time. */
  #jobs: ClaimedJob[] = [];

  get size(): number {
    return this.#jobs.length;
  }

  /** When the first of them is to go. */
  get nextAt(): Date | null {
    return this.#jobs[0]?.runAt ?? null;
  }

  add(jobs: readonly ClaimedJob[]): void {
    if (jobs.length === 0) return;
    this.#jobs = [...this.#jobs, ...jobs].sort((a, b) => a.runAt.getTime() - b.runAt.getTime());
  }

  /** Takes out those that are meant, if they are there. */
  remove(ids: ReadonlySet<string>): ClaimedJob[] {
    const removed = this.#jobs.filter(({ id }) => ids.has(id));
    if (removed.length > 0) this.#jobs = this.#jobs.filter(({ id }) => !ids.has(id));
    return removed;
  }

  /** Takes out those whose time has come. */
  take(now: number): ClaimedJob[] {
    const first = this.#jobs.findIndex(({ runAt }) => runAt.getTime() > now);
    return this.#jobs.splice(0, first < 0 ? this.#jobs.length : first);
  }
}
