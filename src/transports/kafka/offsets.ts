/** The group's progress in a partition: what is in hand, and how far everything is finished. */
export class PartitionOffsets {
  readonly partition: number;
  readonly #inHand = new Set<bigint>();
  #next = -1n;
  #committed = -1n;
  leaderEpoch = -1;

  constructor(partition: number) {
    this.partition = partition;
  }

  /** False when it is in hand or already finished: after a rebalance the client reads again what was not committed. */
  take(offset: bigint): boolean {
    if (offset < this.#next) return false;
    this.#inHand.add(offset);
    this.#next = offset + 1n;
    return true;
  }

  settle(offset: bigint): void {
    this.#inHand.delete(offset);
  }

  /** The offset to commit, or null when it is already committed. */
  get due(): bigint | null {
    let first = this.#next;
    for (const offset of this.#inHand) {
      // They were added in order.
      first = offset;
      break;
    }
    return first > this.#committed && first >= 0n ? first : null;
  }

  committed(offset: bigint): void {
    if (offset > this.#committed) this.#committed = offset;
  }
}
