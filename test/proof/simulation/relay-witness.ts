import type { ClaimedJob } from "../../../src/store/claims.ts";
import {
  type AcquireParams,
  type CheckpointParams,
  type CheckpointResult,
  type PartitionGrant,
  type PartitionHold,
  type PartitionOutcome,
  slotCount,
} from "../../../src/store/partitions.ts";
import { refOf } from "./history.ts";
import type { Arrival, RelayHistory } from "./relay-history.ts";

interface Holder {
  readonly owner: string;
  readonly process: string;
  readonly epoch: number;
  readonly firstSlot: number;
  readonly endSlot: number;
  leaseUntil: number;
}

/** Stands beside the store and the broker: knows who holds which partition until when, what was named to whom, and judges what each does with it. */
export class RelayWitness {
  readonly #history: RelayHistory;
  /** How many jobs a partition may have named. */
  readonly #width: number;
  readonly #holders = new Map<number, Holder>();
  readonly #lastEpochs = new Map<number, number>();
  /** How many partitions there may be. */
  readonly #counts: readonly number[];
  #count = 0;
  /** How many partitions were asked for at the most. */
  #asked = 0;

  constructor(history: RelayHistory, width: number, counts: readonly number[]) {
    this.#history = history;
    this.#width = width;
    this.#counts = counts;
  }

  /** The store has done a call. */
  done(process: string, verb: string, params: unknown, result: unknown): void {
    if (verb === "acquirePartitions")
      this.#acquired(process, params as AcquireParams, result as PartitionGrant[]);
    if (verb === "renewPartitions") {
      this.#renewed(params as PartitionHold & { leaseMs: number }, result as PartitionOutcome[]);
    }
    if (verb === "releasePartitions") this.#released(process, params as PartitionHold);
    if (verb === "checkpoint")
      this.#checkpointed(process, params as CheckpointParams, result as CheckpointResult);
  }

  #acquired(process: string, params: AcquireParams, grants: readonly PartitionGrant[]): void {
    const { owner, leaseMs } = params;
    const { now } = this.#history;
    this.#asked = Math.max(this.#asked, params.partitions);
    // Whoever asks for more may cut them, and take none of them.
    if (this.#asked > this.#count && [...this.#holders.values()].every(({ leaseUntil }) => leaseUntil <= now))
      this.#holders.clear();
    for (const grant of grants) {
      const { partition, epoch, named, firstSlot, endSlot } = grant;
      for (const [other, holder] of this.#holders) {
        if (holder.leaseUntil <= now || holder.endSlot <= firstSlot || holder.firstSlot >= endSlot) continue;
        this.#history.violate(
          "a slot has one holder",
          `${partition} was granted, and ${holder.owner} has ${other}`,
        );
      }
      this.#cut(grant);
      if (epoch <= (this.#lastEpochs.get(partition) ?? 0)) {
        this.#history.violate("epochs rise", `partition ${partition} has epoch ${epoch} again`);
      }
      if (named.length > this.#width) {
        this.#history.violate("a death costs at most what may be named", `${named.length} of ${this.#width}`);
      }
      if (named.length > 0) this.#history.takeovers += 1;
      this.#lastEpochs.set(partition, epoch);
      const slots = { firstSlot, endSlot };
      this.#holders.set(partition, { owner, process, epoch, ...slots, leaseUntil: now + leaseMs });
      this.#history.tell(process, `holds ${partition} under ${epoch}, with ${named.map(refOf).join(" ")}`);
      for (const job of named) this.#name(process, partition, epoch, job);
    }
  }

  /** A grant tells by its slots how many partitions there are; after a cut nobody holds anything of before. */
  #cut({ partition, firstSlot, endSlot }: PartitionGrant): void {
    const start = (number: number, count: number): number => Math.floor((number * slotCount) / count);
    const count = this.#counts.find(
      (one) => start(partition, one) === firstSlot && start(partition + 1, one) === endSlot,
    );
    if (count === undefined || count < this.#count) {
      this.#history.violate("partitions are cut as was asked, and never fewer", `${partition} of ${count}`);
    }
    if (count === undefined || count === this.#count) return;
    if (this.#count > 0) this.#history.cuts += 1;
    this.#count = count;
    this.#holders.clear();
  }

  #renewed(
    { owner, held, leaseMs }: PartitionHold & { leaseMs: number },
    outcomes: readonly PartitionOutcome[],
  ): void {
    for (const [index, { partition, epoch }] of held.entries()) {
      const holder = this.#holder(owner, partition, epoch);
      if ((holder !== undefined) !== (outcomes[index] === "renewed")) {
        this.#history.violate("a stale epoch is refused", `renewal of ${partition} under ${epoch}`);
      }
      if (holder !== undefined) holder.leaseUntil = this.#history.now + leaseMs;
    }
  }

  #released(process: string, { owner, held }: PartitionHold): void {
    for (const { partition, epoch } of held) {
      this.#history.tell(process, `gives back ${partition} under ${epoch}`);
      if (this.#holder(owner, partition, epoch) !== undefined) this.#holders.delete(partition);
    }
  }

  #checkpointed(process: string, params: CheckpointParams, { outcome, named }: CheckpointResult): void {
    const { owner, partition, epoch, settled, aheadMs } = params;
    const isHolder = this.#holder(owner, partition, epoch) !== undefined;
    if (isHolder !== (outcome === "written")) {
      this.#history.violate(
        "a stale epoch never writes",
        `${owner} on ${partition} under ${epoch}: ${outcome}`,
      );
    }
    this.#history.tell(
      process,
      `checkpoint of ${partition} under ${epoch} ${outcome}: ${settled.map((one) => `${refOf(one)} ${one.outcome.kind}`).join(" ")}; names ${named.map(refOf).join(" ")}`,
    );
    for (const job of named) {
      const isAhead = job.delivery !== "at-most-once";
      const earlyMs = job.runAt.getTime() - this.#history.storeNow;
      if (earlyMs > (isAhead ? aheadMs : 0))
        this.#history.violate("never early", `${refOf(job)} was named ${earlyMs} ms early`);
      this.#name(process, partition, epoch, job);
    }
  }

  #name(process: string, partition: number, epoch: number, job: ClaimedJob): void {
    const { id, token, input } = job;
    const runAt = job.runAt.getTime();
    this.#history.namings.set(refOf(job), { id, token, process, partition, epoch, runAt, input });
  }

  #holder(owner: string, partition: number, epoch: number): Holder | undefined {
    const holder = this.#holders.get(partition);
    return holder?.owner === owner && holder.epoch === epoch ? holder : undefined;
  }

  /** A message has reached the broker. */
  arrived(arrival: Arrival): void {
    const history = this.#history;
    const ref = refOf(arrival);
    const naming = history.namings.get(ref);
    if (naming === undefined || naming.process !== arrival.process) {
      history.violate("only what was named is published, and only by whom it was named to", ref);
    } else {
      if (naming.input !== arrival.body) history.violate("what is published is what was named", ref);
      if (arrival.on < naming.runAt) history.violate("never early", `${ref} arrived early`);
      const holder = this.#holders.get(naming.partition);
      if (holder?.epoch !== naming.epoch || holder.leaseUntil <= history.now) {
        history.violate("a holder that cannot renew stops before expiry", `${ref} of ${arrival.process}`);
      }
    }
    const again = history.arrivals.some(({ id, token }) => id === arrival.id && token === arrival.token);
    if (again && !history.unwritten.has(ref)) history.violate("each token is published once", ref);
    history.arrivals.push(arrival);
  }
}
