const maxChunk = 512;

/**
 * A list that stays sorted, split into chunks so neither adding nor deleting moves more than a few hundred
 * entries. The order must be total, and what it depends on must not change while an entry is inside.
 */
export class Sorted<Key, Item extends Key = Key> {
  readonly #compare: (a: Key, b: Key) => number;
  /** None of them empty. */
  readonly #chunks: Item[][] = [];

  constructor(compare: (a: Key, b: Key) => number) {
    this.#compare = compare;
  }

  add(item: Item): void {
    const last = this.#chunks.length - 1;
    const index = Math.min(this.#chunkFor(item), last);
    const chunk = this.#chunks[index];
    if (chunk === undefined) {
      this.#chunks.push([item]);
      return;
    }
    chunk.splice(this.#placeIn(chunk, item), 0, item);
    if (chunk.length > maxChunk) this.#chunks.splice(index + 1, 0, chunk.splice(maxChunk / 2));
  }

  delete(item: Item): boolean {
    const index = this.#chunkFor(item);
    const chunk = this.#chunks[index];
    if (chunk === undefined) return false;
    const place = this.#placeIn(chunk, item);
    if (chunk[place] !== item) return false;
    chunk.splice(place, 1);
    if (chunk.length === 0) this.#chunks.splice(index, 1);
    return true;
  }

  first(): Item | undefined {
    return this.#chunks[0]?.[0];
  }

  /** The next entry after the key, whether or not the key itself is inside. */
  after(key: Key): Item | undefined {
    const { index, place } = this.#behind(key);
    return this.#chunks[index]?.[place] ?? this.#chunks[index + 1]?.[0];
  }

  /** From the first entry after the key, or from the start. Nothing may be added or deleted in the meantime. */
  *upward(key: Key | null): Generator<Item> {
    const start = key === null ? { index: 0, place: 0 } : this.#behind(key);
    for (let index = start.index; index < this.#chunks.length; index += 1) {
      const chunk = this.#chunks[index] ?? [];
      yield* index === start.index ? chunk.slice(start.place) : chunk;
    }
  }

  /** From the last entry before the key, or from the end. Nothing may be added or deleted in the meantime. */
  *downward(key: Key | null): Generator<Item> {
    const last = this.#chunks.length - 1;
    for (let index = key === null ? last : Math.min(this.#chunkFor(key), last); index >= 0; index -= 1) {
      for (const item of (this.#chunks[index] ?? []).toReversed()) {
        if (key === null || this.#compare(item, key) < 0) yield item;
      }
    }
  }

  /** The position of the first entry after the key; at the very end of a chunk it is the next one's first. */
  #behind(key: Key): { index: number; place: number } {
    const index = this.#chunkFor(key);
    const chunk = this.#chunks[index] ?? [];
    const place = this.#placeIn(chunk, key);
    const found = chunk[place];
    return { index, place: found !== undefined && this.#compare(found, key) === 0 ? place + 1 : place };
  }

  /** The first chunk that extends as far as the key. */
  #chunkFor(key: Key): number {
    let low = 0;
    let high = this.#chunks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const reach = this.#chunks[middle]?.at(-1);
      if (reach !== undefined && this.#compare(reach, key) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The first position in the chunk whose entry is not before the key. */
  #placeIn(chunk: readonly Item[], key: Key): number {
    let low = 0;
    let high = chunk.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const item = chunk[middle];
      if (item !== undefined && this.#compare(item, key) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
