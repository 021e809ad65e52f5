import { type Clock, sleep } from "../clock.ts";
import type { Emit } from "../events.ts";
import { historyKeptMs } from "../history.ts";
import type { Settings } from "../settings.ts";
import type { Store } from "../store/store.ts";
import { afterAnswer, type Contact, graceMs, reapableUntil } from "./contact.ts";

export interface ReaperParts {
  readonly store: Store;
  readonly settings: Settings;
  readonly clock: Clock;
  random(): number;
  readonly emit: Emit;
  /** How long to be in touch with the store before ending a claim. @default half the lease */
  readonly waitMs?: number;
}

const reapLimit = 100;
const pruneLimit = 1_000;
const pruneEveryMs = 10_000;
/** How many full batches one turn works off before it lets others have the store. */
const maxBatches = 10;
/** A node that has said nothing for this long is forgotten. */
const nodesKeptMs = 24 * 3_600_000;

/** Ends what dead processes left behind and forgets what is past its retention. Every node runs one; each step is a compare-and-set. */
export class Reaper {
  readonly #parts: ReaperParts;
  readonly #stopping = new AbortController();
  #running: Promise<void> | null = null;
  #contact: Contact | null = null;

  constructor(parts: ReaperParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, settings, random, emit } = this.#parts;
    const { signal } = this.#stopping;
    let nextPruneMs = clock.monotonic();
    while (!signal.aborted) {
      try {
        await this.#reap();
        if (clock.monotonic() >= nextPruneMs) {
          const isDone = await this.#prune();
          // If pruning falls behind, continue next tick.
          nextPruneMs = clock.monotonic() + (isDone ? pruneEveryMs * (0.5 + random()) : 0);
        }
      } catch (error) {
        emit("error", { error, during: "reaping" });
      }
      // Also with a long poll often enough to notice an outage in which leases can run out.
      const everyMs = Math.min(settings.pollMs, settings.leaseMs / 4);
      await sleep(clock, everyMs * (0.75 + random() / 2), signal);
    }
  }

  async #reap(): Promise<void> {
    const { store, emit, settings, waitMs = graceMs(settings.leaseMs) } = this.#parts;
    for (let batch = 0; batch < maxBatches; batch++) {
      const until = reapableUntil(this.#contact, waitMs);
      // A job that expired while it waited has no holder, and ends in any case.
      const { reaped, more, mark } = await store.reap({ limit: reapLimit, until: until ?? 0 });
      this.#contact = afterAnswer(this.#contact, mark, settings.leaseMs);
      for (const job of reaped) emit("reaped", job);
      const mayReap = reapableUntil(this.#contact, waitMs) !== null;
      // What ran out since the last answer is found by the second call, which may go by the first one's.
      if (!more || !mayReap || (reaped.length === 0 && batch > 0)) return;
    }
  }

  /** Whether nothing is left to forget. */
  async #prune(): Promise<boolean> {
    const { store, settings } = this.#parts;
    for (let batch = 0; batch < maxBatches; batch++) {
      const { more } = await store.prune({
        ...settings.retention,
        nodesMs: nodesKeptMs,
        historyMs: historyKeptMs,
        limit: pruneLimit,
      });
      if (!more) return true;
    }
    return false;
  }
}
