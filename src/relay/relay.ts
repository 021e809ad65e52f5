import { sleep } from "../clock.ts";
import type { AnyDefinition } from "../definition.ts";
import type { Emit } from "../events.ts";
import type { Logger } from "../log.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Settings } from "../settings.ts";
import type { DestinationState, PartitionLag } from "../store/nodes.ts";
import type { Notice } from "../store/notices.ts";
import type { Store } from "../store/store.ts";
import { Destinations } from "./destinations.ts";
import { Ownership } from "./ownership.ts";
import { BacklogRate } from "./pacing.ts";
import { Partition } from "./partition.ts";

export interface RelayParts {
  readonly store: Store;
  /** The node's id. */
  readonly owner: string;
  readonly definitions: ReadonlyMap<string, AnyDefinition>;
  readonly settings: Settings;
  readonly runtime: Runtime;
  readonly emit: Emit;
  readonly log: Logger;
}

/** How the relay of this process is doing. */
export interface RelayStatus {
  /** How many partitions this process owns. */
  readonly held: number;
  /** How many partitions there are. */
  readonly partitions: number;
  /** How many relays share them. */
  readonly relays: number;
  /** Named and not settled. */
  readonly inFlight: number;
  /** How overdue the oldest due job on an owned partition is. */
  readonly lagMs: number;
  /**
   * Due jobs that this relay cannot publish: their route is unknown here, their queue paused or their destination
   * unreachable.
   */
  readonly withheld: number;
}

/**
 * Publishes jobs that have a route when they are due: it owns partitions, and publishes the jobs of each. It never runs
 * handlers.
 */
export class Relay {
  readonly #parts: RelayParts;
  readonly #stopping = new AbortController();
  #destinations: Destinations | null = null;
  #ownership: Ownership | null = null;
  #paused: ReadonlySet<string> = new Set();
  #unsubscribe: (() => Promise<void>) | null = null;
  #watching: Promise<void> | null = null;

  constructor(parts: RelayParts) {
    this.#parts = parts;
  }

  get status(): RelayStatus {
    const { settings } = this.#parts;
    const held = this.#ownership?.held ?? [];
    return {
      held: held.length,
      partitions: this.#ownership?.total ?? settings.relay.partitions,
      relays: this.#ownership?.relays ?? 1,
      inFlight: held.reduce((sum, { inFlight }) => sum + inFlight, 0),
      lagMs: held.reduce((most, { lagMs }) => Math.max(most, lagMs), 0),
      withheld: held.reduce((sum, { reader }) => sum + reader.withheld, 0),
    };
  }

  /** How each destination is doing, those in trouble first. */
  get destinations(): DestinationState[] {
    return this.#destinations?.states ?? [];
  }

  /** Partitions on which a job has been due for at least `leastMs` and is not published yet, the longest wait first. */
  lags(leastMs: number): PartitionLag[] {
    return (this.#ownership?.held ?? [])
      .map(({ ref, lagMs }) => ({ partition: ref.partition, lagMs: Math.round(lagMs) }))
      .filter(({ lagMs }) => lagMs >= leastMs)
      .toSorted((a, b) => b.lagMs - a.lagMs);
  }

  async start(): Promise<void> {
    const { store, settings, runtime, definitions, log } = this.#parts;
    const { clock } = runtime;
    const destinations = await Destinations.open(definitions.values(), { clock, log });
    this.#destinations = destinations;
    await this.#readPaused();
    const backlogRate = new BacklogRate(settings.relay.backlogPerSecond, clock.monotonic());
    const ownership = new Ownership({
      ...this.#parts,
      open: (grant, safeUntilMs) =>
        new Partition(
          {
            ...this.#parts,
            destinations,
            backlogRate,
            limit: Math.max(1, Math.floor(settings.relay.inFlight / ownership.total)),
            isPaused: (queue) => this.#paused.has(queue),
            onCircuit: (openMs) => void clock.after(openMs, () => this.#rereadSkipped()),
          },
          grant,
          safeUntilMs,
        ),
    });
    this.#ownership = ownership;
    this.#unsubscribe = await store.subscribe(this.#notice);
    this.#watching = this.#watch();
    ownership.start();
  }

  /**
   * Names nothing more, waits up to `timeoutMs` for brokers to answer, settles what they answered, and gives its
   * partitions back.
   */
  async stop(timeoutMs: number): Promise<void> {
    this.#stopping.abort();
    await this.#ownership?.stop(timeoutMs);
    await this.#watching;
    await this.#unsubscribe?.();
    await this.#destinations?.close();
  }

  readonly #notice = (notice: Notice): void => {
    if (notice.kind === "queues") void this.#refreshPaused();
    if (notice.kind === "cancel") {
      const ids = new Set(notice.ids);
      for (const partition of this.#ownership?.held ?? []) partition.cancel(ids);
    }
    if (notice.kind === "jobs" && this.#concerns(notice.queues)) {
      for (const { reader } of this.#ownership?.held ?? []) reader.readSoon();
    }
  };

  /** Whether jobs of these queues may have a route. */
  #concerns(queues: readonly string[] | null): boolean {
    if (queues === null) return true;
    return [...this.#parts.definitions.values()].some(
      ({ route, queue }) => route !== null && queues.includes(queue),
    );
  }

  #rereadSkipped(): void {
    for (const { reader } of this.#ownership?.held ?? []) reader.rereadSkipped();
  }

  // ── Paused queues ──

  /** Notices may be lost, so the store is also asked at every poll. */
  async #watch(): Promise<void> {
    const { settings, runtime } = this.#parts;
    while (!this.#stopping.signal.aborted) {
      await sleep(runtime.clock, settings.pollMs, this.#stopping.signal);
      if (!this.#stopping.signal.aborted) await this.#refreshPaused();
    }
  }

  async #refreshPaused(): Promise<void> {
    try {
      await this.#readPaused();
    } catch (error) {
      this.#parts.emit("error", { error, during: "reading paused queues" });
    }
  }

  async #readPaused(): Promise<void> {
    const before = this.#paused;
    const queues = await this.#parts.store.queues();
    this.#paused = new Set(queues.flatMap(({ queue, paused }) => (paused ? queue : [])));
    if ([...before].some((queue) => !this.#paused.has(queue))) this.#rereadSkipped();
  }
}
