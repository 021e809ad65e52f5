import { isTerminal } from "../../../src/state.ts";
import type { ClaimedJob } from "../../../src/store/claims.ts";
import type { StoredJob } from "../../../src/store/jobs.ts";
import type { QueueConfig } from "../../../src/store/queues.ts";
import { limits } from "./handlers.ts";
import { type History, refOf } from "./history.ts";

type Jobs = ReadonlyMap<string, StoredJob>;

/** Watches what must hold over many jobs at once: limits of keys and queues, rates, pauses, unique keys. */
export class LimitsWitness {
  readonly #history: History;
  readonly #uniqueKeys = new Map<string, string>();
  readonly #queues = new Map<string, QueueConfig>();
  readonly #windows = new Map<string, { readonly startedAt: number; count: number }>();

  constructor(history: History) {
    this.#history = history;
  }

  holdsUnique(id: string, key: string): void {
    this.#uniqueKeys.set(id, key);
  }

  configured(queue: QueueConfig): void {
    this.#queues.set(queue.queue, queue);
    this.#history.tell("store", `queue ${queue.queue}: paused ${queue.paused}, limit ${queue.concurrency}`);
  }

  /** A new claim, and all jobs as they stand after it. */
  claimed(job: ClaimedJob, nowMs: number, jobs: Jobs): void {
    const queue = this.#queues.get(job.queue);
    if (queue?.paused === true) this.#history.violate("a paused queue rests", `${refOf(job)} was claimed`);
    if (queue !== undefined && queue.concurrency !== null) {
      const active = [...jobs.values()].filter(
        (one) => one.queue === job.queue && one.state === "active",
      ).length;
      if (active > queue.concurrency)
        this.#history.violate("a queue's limit holds", `${active} in ${job.queue}`);
    }
    const rateKey = jobs.get(job.id)?.rateKey ?? null;
    if (rateKey !== null) this.#count(rateKey, nowMs);
  }

  #count(key: string, nowMs: number): void {
    const { limit, perMs } = limits.rated;
    const known = this.#windows.get(key);
    const window =
      known === undefined || nowMs >= known.startedAt + perMs ? { startedAt: nowMs, count: 0 } : known;
    window.count += 1;
    this.#windows.set(key, window);
    if (window.count > limit) this.#history.violate("a key's rate holds", `${window.count} claims of ${key}`);
  }

  /** At every moment, whatever happened. */
  judge(jobs: Jobs, verb: string): void {
    const active = new Map<string, number>();
    const holders = new Map<string, string>();
    for (const job of jobs.values()) {
      if (job.state === "active" && job.concurrencyKey !== null) {
        const count = (active.get(job.concurrencyKey) ?? 0) + 1;
        active.set(job.concurrencyKey, count);
        if (count > limits.keyed) {
          this.#history.violate("a key's limit holds", `${count} active after ${verb}, ${job.id} among them`);
        }
      }
      const key = this.#uniqueKeys.get(job.id);
      if (key === undefined || isTerminal(job.state)) continue;
      const holder = holders.get(key);
      holders.set(key, job.id);
      if (holder !== undefined) {
        this.#history.violate("a unique key has one holder", `${holder} and ${job.id} after ${verb}`);
      }
    }
  }
}
