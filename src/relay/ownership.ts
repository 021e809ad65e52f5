import { RenewalLoop } from "../claims/renewal-loop.ts";
import { sleep } from "../clock.ts";
import type { Emit } from "../events.ts";
import type { Logger } from "../log.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { withRetries } from "../runtime/transient.ts";
import type { Settings } from "../settings.ts";
import type { PartitionGrant, PartitionTable } from "../store/partitions.ts";
import type { Store } from "../store/store.ts";
import type { Partition } from "./partition.ts";

export interface OwnershipParts {
  readonly store: Store;
  readonly owner: string;
  readonly settings: Settings;
  readonly runtime: Runtime;
  readonly emit: Emit;
  readonly log: Logger;
  /** Makes a partition that was granted; its lease is safe until then, on the monotonic clock. */
  open(grant: PartitionGrant, safeUntilMs: number): Partition;
}

/**
 * Keeps this process's share of the partitions: acquires free ones, renews what it owns, gives back what is more than
 * its share. Only the store decides who owns what; the share is how many to ask for.
 */
export class Ownership {
  readonly #parts: OwnershipParts;
  readonly #held = new Map<number, Partition>();
  readonly #running = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  readonly #renewal: RenewalLoop;
  #sharing: Promise<void> | null = null;
  #total: number;
  #relays = 1;
  #hasReportedMore = false;

  constructor(parts: OwnershipParts) {
    this.#parts = parts;
    this.#total = parts.settings.relay.partitions;
    const { settings, runtime, emit } = parts;
    this.#renewal = new RenewalLoop({
      clock: runtime.clock,
      heartbeatMs: settings.heartbeatMs,
      random: () => runtime.random(),
      renew: () => this.#renewAll(),
      onError: (error) => emit("error", { error, during: "renewing partitions" }),
    });
  }

  get held(): readonly Partition[] {
    return [...this.#held.values()];
  }

  /** How many partitions there are, as far as this process knows. */
  get total(): number {
    return this.#total;
  }

  /** How many relays were alive at the last look. */
  get relays(): number {
    return this.#relays;
  }

  start(): void {
    this.#sharing = this.#share();
    this.#renewal.start();
  }

  /** Gives everything back. What is named has this long to settle; then the next owner takes it over. */
  async stop(timeoutMs: number): Promise<void> {
    const { clock } = this.#parts.runtime;
    this.#stopping.abort();
    // A grant in flight must be given back too.
    await this.#sharing;
    for (const partition of this.held) partition.drain();
    const cancel = clock.after(timeoutMs, () => {
      for (const partition of this.held) partition.end();
    });
    while (this.#running.size > 0) await Promise.all(this.#running);
    cancel();
    await this.#renewal.stop();
  }

  // ── Acquiring and giving back ──

  async #share(): Promise<void> {
    const { settings, runtime, emit } = this.#parts;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.#balance();
      } catch (error) {
        emit("error", { error, during: "sharing partitions" });
      }
      // Twice per poll, so a dead owner's partitions are acquired within a poll after its lease.
      await sleep(runtime.clock, (settings.pollMs / 2) * (0.75 + runtime.random() / 4), signal);
    }
  }

  async #balance(): Promise<void> {
    const { store, owner, settings } = this.#parts;
    const [nodes, table] = await Promise.all([store.nodes(), store.partitions()]);
    const relays = nodes.filter(({ alive, roles }) => alive && roles.includes("relay"));
    this.#relays = Math.max(1, relays.length);
    this.#total = Math.max(table.wanted, settings.relay.partitions);
    this.#reportMore(table);
    const share = fairShare(
      owner,
      relays.map(({ id }) => id),
      this.#total,
    );
    if (this.#stopping.signal.aborted) return;
    // Their number is raised, and the store grants no new one before every old one is given back.
    const isLeaving = table.partitions.length > 0 && table.wanted > table.partitions.length;
    if (isLeaving) for (const partition of this.held) partition.drain();
    const want = isLeaving && this.#held.size > 0 ? 0 : share - this.#held.size;
    if (want > 0 || table.wanted < settings.relay.partitions) await this.#acquire(Math.max(0, want));
    const serving = this.held.filter(({ isServing }) => isServing);
    for (const partition of serving.slice(share)) partition.drain();
  }

  #reportMore({ wanted }: PartitionTable): void {
    const { partitions } = this.#parts.settings.relay;
    if (wanted <= partitions || this.#hasReportedMore) return;
    this.#hasReportedMore = true;
    this.#parts.log.info(
      { asked: partitions, partitions: wanted },
      "this namespace has more partitions than relay.partitions asks for; the number can be raised, never lowered",
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
    // It was lost to another process and is free again, before this one knew.
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
   * Gives back a partition that has ended; if that fails, its lease runs out. While a broker owes an answer it is left to
   * run out too: the next owner must not publish what may still be in flight.
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

  // ── Renewing ──

  async #renewAll(): Promise<void> {
    const { store, owner, settings, runtime } = this.#parts;
    const partitions = this.held;
    if (partitions.length === 0) return;
    const sentAtMs = runtime.clock.monotonic();
    const held = partitions.map(({ ref }) => ref);
    const outcomes = await store.renewPartitions({ owner, leaseMs: settings.leaseMs, held });
    for (const [index, partition] of partitions.entries()) {
      if (outcomes[index] === "renewed") partition.renewed(sentAtMs + settings.leaseMs);
      // Even while it is being given back: what can no longer be settled must not be waited for.
      else partition.lose();
    }
  }
}

/**
 * How many partitions a relay should own: as many as every other, and the remainder goes to the first by name, so all
 * relays that see each other agree without talking.
 */
export function fairShare(owner: string, relays: readonly string[], partitions: number): number {
  const everyone = [...new Set([...relays, owner])].toSorted();
  const base = Math.floor(partitions / everyone.length);
  return everyone.indexOf(owner) < partitions % everyone.length ? base + 1 : base;
}
