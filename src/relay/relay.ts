import { sleep } from "../clock.ts";
import type { AnyDefinition } from "../definition.ts";
import type { Emit } from "../events.ts";
import type { Logger } from "../log.ts";
import type { Runtime } from "../runtime.ts";
import type { Settings } from "../settings.ts";
import type { Notice, Store } from "../store.ts";
import { DrainRate } from "./drain-rate.ts";
import { Outlets } from "./outlets.ts";
import { Ownership } from "./ownership.ts";
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

/** How a relay is doing, at this moment. */
export interface RelayStatus {
  /** The partitions that this process holds. */
  readonly held: number;
  /** How many partitions there are. */
  readonly partitions: number;
  /** How many relays share them. */
  readonly relays: number;
  /** Named and not settled. */
  readonly inFlight: number;
  /** How long the oldest job that is due on a held partition has been so. */
  readonly lagMs: number;
  /** Due jobs that this relay leaves alone: it does not know their route, their queue is paused, or their broker is in trouble. */
  readonly withheld: number;
}

/** Publishes jobs that have a route when they are due: it owns partitions, and fires each of them. It never runs handlers. */
export class Relay {
  readonly #parts: RelayParts;
  readonly #stopping = new AbortController();
  #outlets: Outlets | null = null;
  #ownership: Ownership | null = null;
  #paused: ReadonlySet<string> = new Set();
  #unsubscribe: (() => Promise<void>) | null = null;
  #watching: Promise<void> | null = null;

  constructor(parts: RelayParts) {
    this.#parts = parts;
  }

  get status(): RelayStatus {
    const held = this.#ownership?.held ?? [];
    return {
      held: held.length,
      partitions: this.#ownership?.total ?? this.#parts.settings.relay.partitions,
      relays: this.#ownership?.relays ?? 1,
      inFlight: held.reduce((sum, { inFlight }) => sum + inFlight, 0),
      lagMs: held.reduce((most, { lagMs }) => Math.max(most, lagMs), 0),
      withheld: held.reduce((sum, { reader }) => sum + reader.withheld, 0),
    };
  }

  async start(): Promise<void> {
    const { store, settings, runtime, definitions, log } = this.#parts;
    const { clock } = runtime;
    const outlets = await Outlets.open(definitions.values(), { clock, log });
    this.#outlets = outlets;
    await this.#readPaused();
    const drainRate = new DrainRate(settings.relay.backlogPerSecond, clock.monotonic());
    const ownership = new Ownership({
      ...this.#parts,
      open: (grant, safeUntilMs) =>
        new Partition(
          {
            ...this.#parts,
            outlets,
            drainRate,
            width: Math.max(1, Math.floor(settings.relay.inFlight / ownership.total)),
            isPaused: (queue) => this.#paused.has(queue),
            onClosed: (ms) => void clock.after(ms, () => this.#again()),
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

  /** Names nothing more, waits up to `timeoutMs` for brokers that still have to answer, writes what they said, and gives its partitions back. */
  async stop(timeoutMs: number): Promise<void> {
    this.#stopping.abort();
    await this.#ownership?.stop(timeoutMs);
    await this.#watching;
    await this.#unsubscribe?.();
    await this.#outlets?.close();
  }

  readonly #notice = (notice: Notice): void => {
    if (notice.kind === "queues") void this.#refreshPaused();
    if (notice.kind === "cancel") {
      const ids = new Set(notice.ids);
      for (const partition of this.#ownership?.held ?? []) partition.cancel(ids);
    }
    if (notice.kind === "jobs" && this.#concerns(notice.queues)) {
      for (const { reader } of this.#ownership?.held ?? []) reader.soon();
    }
  };

  /** Whether any job of these queues could be the relay's; it may be one of an unknown name, which then costs a look. */
  #concerns(queues: readonly string[] | null): boolean {
    if (queues === null) return true;
    return [...this.#parts.definitions.values()].some(
      ({ route, queue }) => route !== null && queues.includes(queue),
    );
  }

  #again(): void {
    for (const { reader } of this.#ownership?.held ?? []) reader.again();
  }

  // ── Paused queues ──

  /** Notices may be lost, so it is also asked now and then. */
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
      this.#parts.emit("error", { error, during: "asking which queues are paused" });
    }
  }

  async #readPaused(): Promise<void> {
    const before = this.#paused;
    const queues = await this.#parts.store.queues();
    this.#paused = new Set(queues.flatMap(({ queue, paused }) => (paused ? queue : [])));
    if ([...before].some((queue) => !this.#paused.has(queue))) this.#again();
  }
}
