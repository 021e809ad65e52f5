/** Usually more than a node holds at once. Evicted ones are looked up by their ids. */
const maxKept = 20_000;

/** The numbers of jobs that this handle has claimed, so the server need not look them up by their ids when they end. */
export class ClaimedSeqs {
  readonly #seqs = new Map<string, number>();

  note(ids: readonly string[], seqs: readonly number[]): void {
    ids.forEach((id, place) => {
      const seq = seqs[place];
      // The newest entry is evicted last.
      this.#seqs.delete(id);
      if (seq !== undefined) this.#seqs.set(id, seq);
    });
    for (const id of this.#seqs.keys()) {
      if (this.#seqs.size <= maxKept) return;
      this.#seqs.delete(id);
    }
  }

  /** Null if any of them is unknown. Each is returned only once. */
  take(ids: readonly string[]): number[] | null {
    const found: number[] = [];
    for (const id of ids) {
      const seq = this.#seqs.get(id);
      if (seq === undefined) continue;
      found.push(seq);
      this.#seqs.delete(id);
    }
    return found.length === ids.length ? found : null;
  }
}
