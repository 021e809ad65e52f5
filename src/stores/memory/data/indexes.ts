import { isTerminal } from "../../../state.ts";
import { firstSlotOf } from "../../../store/partitions.ts";
import { forgetAt, mayExpire, type Row } from "../rows.ts";
import { byExpiry, byTime, Lines, type Place } from "./lines.ts";
import { Sorted } from "./sorted.ts";

export const byOrder = (a: { readonly order: number }, b: { readonly order: number }): number =>
  a.order - b.order;
const byLease = (a: Row, b: Row): number => (a.leaseUntil ?? 0) - (b.leaseUntil ?? 0) || a.order - b.order;
/** A job's place in the order of ends. */
export type End = Pick<Row, "finishedAt" | "order">;
export const byEnd = (a: End, b: End): number =>
  (a.finishedAt ?? 0) - (b.finishedAt ?? 0) || a.order - b.order;
const byForgetting = (a: Row, b: Row): number => (forgetAt(a) ?? 0) - (forgetAt(b) ?? 0) || a.order - b.order;

/** How rows are found by fields that may change. A row is removed before it changes and added after. */
export class Indexes {
  readonly lines = new Lines();
  readonly leases = new Sorted<Row>(byLease);
  readonly expiring = new Sorted<Row>(byExpiry);
  /** Terminal jobs whose retention `prune` decides. */
  readonly ended = {
    succeeded: new Sorted<End, Row>(byEnd),
    cancelled: new Sorted<End, Row>(byEnd),
    dead: new Sorted<End, Row>(byEnd),
    lost: new Sorted<End, Row>(byEnd),
  };
  /** Those with their own retention. */
  readonly forgetting = new Sorted<Row>(byForgetting);
  /** Waiting, never claimed jobs by their debounce key. */
  readonly debounced = new Map<string, Sorted<{ readonly order: number }, Row>>();
  /** Claimed jobs of the relay, whatever their partition. */
  readonly named = new Set<Row>();
  /** Waiting jobs of the relay, by partition; empty until the partitions are created. */
  #relayed: Sorted<Place, Row>[] = [];
  readonly #activeByQueue = new Map<string, number>();
  readonly #activeByKey = new Map<string, number>();

  add(row: Row): void {
    if (row.state === "waiting") this.#addWaiting(row);
    if (row.state === "active") this.#addActive(row);
    if (row.leaseUntil !== null) this.leases.add(row);
    if (mayExpire(row) && row.expireAt !== null) this.expiring.add(row);
    this.#endedWith(row)?.add(row);
  }

  remove(row: Row): void {
    if (row.state === "waiting") this.#removeWaiting(row);
    if (row.state === "active") this.#removeActive(row);
    this.leases.delete(row);
    this.expiring.delete(row);
    this.#endedWith(row)?.delete(row);
  }

  activeInQueue(queue: string): number {
    return this.#activeByQueue.get(queue) ?? 0;
  }

  activeUnderKey(concurrencyKey: string): number {
    return this.#activeByKey.get(concurrencyKey) ?? 0;
  }

  relayedIn(partition: number): Sorted<Place, Row> {
    return this.#relayed[partition] ?? new Sorted<Place, Row>(byTime);
  }

  cut(count: number, rows: Iterable<Row>): void {
    this.#relayed = Array.from({ length: count }, () => new Sorted<Place, Row>(byTime));
    for (const row of rows) {
      if (row.relayed && row.state === "waiting") this.#relayedAt(row.slot)?.add(row);
    }
  }

  #addWaiting(row: Row): void {
    if (row.relayed) this.#relayedAt(row.slot)?.add(row);
    else this.lines.add(row);
    if (row.debounceKey === null || row.token > 0) return;
    const sameKey = this.debounced.get(row.debounceKey) ?? new Sorted(byOrder);
    this.debounced.set(row.debounceKey, sameKey);
    sameKey.add(row);
  }

  #removeWaiting(row: Row): void {
    if (row.relayed) this.#relayedAt(row.slot)?.delete(row);
    else this.lines.remove(row);
    if (row.debounceKey === null) return;
    const sameKey = this.debounced.get(row.debounceKey);
    sameKey?.delete(row);
    if (sameKey?.first() === undefined) this.debounced.delete(row.debounceKey);
  }

  #addActive(row: Row): void {
    if (row.relayed) this.named.add(row);
    else this.#countActive(row, 1);
  }

  #removeActive(row: Row): void {
    if (row.relayed) this.named.delete(row);
    else this.#countActive(row, -1);
  }

  #countActive(row: Row, by: 1 | -1): void {
    bump(this.#activeByQueue, row.queue, by);
    if (row.concurrencyKey !== null) bump(this.#activeByKey, row.concurrencyKey, by);
  }

  #relayedAt(slot: number): Sorted<Place, Row> | undefined {
    const count = this.#relayed.length;
    return this.#relayed.find((_, partition) => slot < firstSlotOf(partition + 1, count));
  }

  #endedWith(row: Row): Sorted<Row> | Sorted<End, Row> | null {
    if (!isTerminal(row.state)) return null;
    if (forgetAt(row) !== null) return this.forgetting;
    return this.ended[row.state as keyof Indexes["ended"]];
  }
}

function bump(counts: Map<string, number>, key: string, by: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
