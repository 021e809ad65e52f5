import { type Clock, sleep } from "../clock.ts";
import type { Emit } from "../events.ts";
import type { QueueDepths } from "../observe/metrics.ts";
import type { Settings } from "../settings.ts";
import type { SeenNode } from "../store/nodes.ts";
import type { Store } from "../store/store.ts";

/** What a node that counts for its metrics shows among its roles. */
export const countingRole = "metrics";

/** Nodes with one of these count for the history, where no node counts for its metrics. */
const keepingRoles: readonly string[] = ["planner", "reaper"];

export interface DepthWatchParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly everyMs: number;
  /** This node. */
  readonly id: string;
  /** Whether it counts for its metrics, and so shows {@link countingRole}. */
  readonly isCounting: boolean;
  readonly emit: Emit;
  /** Keeps an answer in the history. */
  readonly keep: (depths: QueueDepths) => void;
}

const defaultEveryMs = 15_000;

/** How often a node asks for the history alone: at least once in each of its minutes, whatever a call takes. */
const keepEveryMs = 30_000;

/** How often a node asks, if it does at all. */
export function askEveryMs(settings: Settings, roles: readonly string[]): number | null {
  return countEveryMs(settings) ?? (roles.some((role) => keepingRoles.includes(role)) ? keepEveryMs : null);
}

/** How often a node asks for its metrics, if it has any. */
export function countEveryMs({ metrics, telemetry }: Settings): number | null {
  if (metrics !== null) return metrics.everyMs;
  return telemetry === null || telemetry.instruments === null ? null : defaultEveryMs;
}

/** For how many intervals an answer is shown when no other comes. */
const shownForIntervals = 3;

/**
 * Queries the store periodically for queue depths, for metrics and for the history. Of all nodes that count for their metrics, the
 * one with the smallest id asks, by the list of living nodes: the answer is the same for all, and no queue is counted once for each process.
 * If no node does, one that plans or reaps asks for the history. For a moment after a node died no node asks, or two do; readers of the
 * figures take the highest.
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
    const { clock, everyMs, isCounting, emit } = this.#parts;
    const { signal } = this.#stopping;
    // Metrics are shown at once. For the history alone, a process that lives only for moments asks nothing.
    if (!isCounting) await sleep(clock, everyMs, signal);
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
    const { store, clock, id, isCounting, keep } = this.#parts;
    if (!isFirst(id, isCounting, await store.nodes())) {
      this.#latest = null;
      return;
    }
    const atMs = clock.monotonic();
    const depths = await store.depths();
    this.#latest = { depths, atMs };
    keep(depths);
  }
}

/** A node that the list does not show cannot know of a better one. */
function isFirst(id: string, isCounting: boolean, nodes: readonly SeenNode[]): boolean {
  const others = nodes.filter((node) => node.alive && node.id !== id);
  const counting = others.filter(({ roles }) => roles.includes(countingRole));
  if (isCounting) return !counting.some((node) => node.id < id);
  if (counting.length > 0) return false;
  return !others.some((node) => node.roles.some((role) => keepingRoles.includes(role)) && node.id < id);
}
