import { type Clock, sleep } from "../clock.ts";
import type { Emit } from "../events.ts";
import type { QueueDepths } from "../observe/metrics.ts";
import type { Settings } from "../settings.ts";
import type { SeenNode } from "../store/nodes.ts";
import type { Store } from "../store/store.ts";

/** What a node that counts shows among its roles. */
export const countingRole = "metrics";

export interface DepthWatchParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly everyMs: number;
  /** This node. */
  readonly id: string;
  readonly emit: Emit;
}

const defaultEveryMs = 15_000;

/** How often a node asks, if it counts at all. */
export function countEveryMs({ metrics, telemetry }: Settings): number | null {
  if (metrics !== null) return metrics.everyMs;
  return telemetry === null || telemetry.instruments === null ? null : defaultEveryMs;
}

/** For how many intervals an answer is shown when no other comes. */
const shownForIntervals = 3;

/**
 * Queries the store periodically for queue depths. Of all nodes that count, the one with the smallest id asks, by the list of
 * living nodes: the answer is the same for all, and no queue is counted once for each process. For a moment after a node died no node asks, or
 * two do; readers of the figures take the highest.
 */
export class DepthWatch {
  readonly #parts: DepthWatchParts;
  readonly #stopping = new AbortController();
  #running: Promise<void> | null = null;
  #latest: { readonly depths: QueueDepths; readonly atMs: number } | null = null;

  constructor(parts: DepthWatchParts) {
    this.#parts = parts;
  }

  /** Null if another node asks, or the store has not answered for long. */
  get latest(): QueueDepths | null {
    const { clock, everyMs } = this.#parts;
    if (this.#latest === null) return null;
    const ageMs = clock.monotonic() - this.#latest.atMs;
    return ageMs > shownForIntervals * everyMs ? null : this.#latest.depths;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    this.#latest = null;
  }

  async #run(): Promise<void> {
    const { clock, everyMs, emit } = this.#parts;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.#look();
      } catch (error) {
        emit("error", { error, during: "reading queue depths" });
      }
      await sleep(clock, everyMs, signal);
    }
  }

  async #look(): Promise<void> {
    const { store, clock, id } = this.#parts;
    if (!isFirst(id, await store.nodes())) {
      this.#latest = null;
      return;
    }
    const atMs = clock.monotonic();
    this.#latest = { depths: await store.depths(), atMs };
  }
}

/** A node that the list does not show cannot know of a better one. */
function isFirst(id: string, nodes: readonly SeenNode[]): boolean {
  return !nodes.some((node) => node.alive && node.roles.includes(countingRole) && node.id < id);
}
