import { sleep } from "../clock.ts";
import type { Emit } from "../events.ts";
import type { Logger } from "../log.ts";
import type { Runtime } from "../runtime.ts";
import type { Settings } from "../settings.ts";
import type { PartitionGrant, PartitionTable, Store } from "../store.ts";
import { reconnectDelayMs, withRetries } from "../transient.ts";
import type { Partition } from "./partition.ts";
import { fairShare } from "./share.ts";

export interface OwnershipParts {
  readonly store: Store;
  readonly owner: string;
  readonly settings: Settings;
  readonly runtime: Runtime;
  readonly emit: Emit;
  readonly log: Logger;
  /** Begins to fire a partition; the lease is safe until then, on the monotonic clock. */
  open(grant: PartitionGrant, safeUntilMs: number): Partition;
}

/**
 * Keeps this process's share of the partitions: takes what is free, renews what it holds, gives back what is too much. Who holds what is
 * the store's decision alone; the share is only how many to ask for.
 */
export class Ownership {
  readonly #parts: OwnershipParts;
  readonly #held = new Map<number, Partition>();
  readonly #running = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  readonly #ended = new AbortController();
  #sharing: Promise<void> | null = null;
  #renewing: Promise<void> | null = null;
  #total: number;
  #relays = 1;
  #hasTold = false;

  constructor(parts: OwnershipParts) {
    this.#parts = parts;
    this.#total = parts.settings.relay.partitions;
  }

  get held(): readonly Partition[] {
    return [...this.#held.values()];
  }

  /** How many partitions there are, as far as is known. */
  get total(): number {
    return this.#total;
  }

  /** How many relays were alive when it was last looked. */
  get relays(): number {
    return this.#relays;
  }

  start(): void {
    this.#sharing = this.#share();
    this.#renewing = this.#renew();
  }

  /** Gives everything back: what is named may settle for so long, then the next owner takes it over. */
  async stop(timeoutMs: number): Promise<void> {
    const { clock } = this.#parts.runtime;
    this.#stopping.abort();
    // A grant that is on its way must be given back too.
    await this.#sharing;
    for (const partition of this.held) partition.drain();
    const cancel = clock.after(timeoutMs, () => {
      for (const partition of this.held) partition.end();
    });
    while (this.#running.size > 0) await Promise.all(this.#running);
    cancel();
    this.#ended.abort();
    await this.#renewing;
  }

  // ── Taking and giving ──

  async #share(): Promise<void> {
    const { settings, runtime, emit } = this.#parts;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.#balance();
      } catch (error) {
        emit("error", { error, during: "sharing out partitions" });
      }
      // Twice in a poll, so that a dead owner's partitions are taken within a poll after its lease.
      await sleep(runtime.clock, (settings.pollMs / 2) * (0.75 + runtime.random() / 4), signal);
    }
  }

  async #balance(): Promise<void> {
    const { store, owner, settings } = this.#parts;
    const [nodes, table] = await Promise.all([store.nodes(), store.partitions()]);
    const relays = nodes.filter(({ alive, roles }) => alive && roles.includes("relay"));
    this.#relays = Math.max(1, relays.length);
    this.#total = Math.max(table.wanted, settings.relay.partitions);
    this.#tellOfMore(table);
    const share = fairShare(
      owner,
      relays.map(({ id }) => id),
      this.#total,
    );
    if (this.#stopping.signal.aborted) return;
    // They are to be cut anew, and nobody is granted one before everybody has given back the old ones.
    const isLeaving = table.partitions.length > 0 && table.wanted > table.partitions.length;
    if (isLeaving) for (const partition of this.held) partition.drain();
    const want = isLeaving && this.#held.size > 0 ? 0 : share - this.#held.size;
    if (want > 0 || table.wanted < settings.relay.partitions) await this.#acquire(Math.max(0, want));
    const serving = this.held.filter(({ isServing }) => isServing);
    for (const partition of serving.slice(share)) partition.drain();
  }

  #tellOfMore({ wanted }: PartitionTable): void {
    const { partitions } = this.#parts.settings.relay;
    if (wanted <= partitions || this.#hasTold) return;
    this.#hasTold = true;
    this.#parts.log.info(
      { asked: partitions, partitions: wanted },
      "this namespace has more partitions than relay.partitions asks for; they can be made more, never fewer",
    );
  }

  async #acquire(want: number): Promise<void> {
    const { store, owner, settings, runtime } = this.#parts;
    const { leaseMs, relay } = settings;
    const sentAtMs = runtime.clock.monotonic();
    const grants = await store.acquirePartitions({ owner, leaseMs, partitions: relay.partitions, want });
    for (const grant of grants) this.#open(grant, sentAtMs + leaseMs);
  }

  #open(grant: PartitionGrant, safeUntilMs: number): void {
    const { open, emit } = this.#parts;
    const { partition: number, epoch } = grant;
    // It was lost to another and is free again, before anybody here has heard of it.
    this.#held.get(number)?.lose();
    const partition = open(grant, safeUntilMs);
    this.#held.set(number, partition);
    emit("partition", { partition: number, epoch, change: "acquired" });
    if (this.#stopping.signal.aborted) partition.drain();
    const running = partition.run().then(() => this.#close(partition));
    this.#running.add(running);
    void running.finally(() => this.#running.delete(running));
  }

  /**
   * A partition that is over is given back at once; where that fails, its lease runs out. So it does while a broker owes an answer: its next
   * owner must not fire what may still be on its way.
   */
  async #close(partition: Partition): Promise<void> {
    const { store, owner, runtime, emit } = this.#parts;
    const { ref } = partition;
    const mayRelease = !partition.isLost && partition.inFlight === 0;
    try {
      if (mayRelease) await withRetries(runtime, () => store.releasePartitions({ owner, held: [ref] }), 3);
    } catch (error) {
      emit("error", { error, during: "giving back a partition" });
    }
    if (this.#held.get(ref.partition) === partition) this.#held.delete(ref.partition);
    emit("partition", { ...ref, change: mayRelease ? "released" : "lost" });
  }

  // ── Keeping ──

  async #renew(): Promise<void> {
    const { settings, runtime, emit } = this.#parts;
    const { signal } = this.#ended;
    let failures = 0;
    while (!signal.aborted) {
      const waitMs = failures === 0 ? settings.heartbeatMs : reconnectDelayMs(failures, runtime.random());
      await sleep(runtime.clock, waitMs, signal);
      if (signal.aborted) return;
      try {
        await this.#renewAll();
        failures = 0;
      } catch (error) {
        failures += 1;
        emit("error", { error, during: "renewing partitions" });
      }
    }
  }

  async #renewAll(): Promise<void> {
    const { store, owner, settings, runtime } = this.#parts;
    const partitions = this.held;
    if (partitions.length === 0) return;
    const sentAtMs = runtime.clock.monotonic();
    const held = partitions.map(({ ref }) => ref);
    const outcomes = await store.renewPartitions({ owner, leaseMs: settings.leaseMs, held });
    for (const [index, partition] of partitions.entries()) {
      if (outcomes[index] === "renewed") partition.renewed(sentAtMs + settings.leaseMs);
      // Also while it is being given back: what cannot settle any more must not wait for it.
      else partition.lose();
    }
  }
}
