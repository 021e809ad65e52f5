import assert from "node:assert";
import { crc32 } from "node:zlib";
import { seededRandom } from "../testing/seeded-random.ts";

/** Chance of one concern. Each has a stream of its own, so that a draw more in one leaves the others as they were. */
export class Chance {
  readonly #next: () => number;

  constructor(seed: number, stream: string) {
    this.#next = seededRandom(crc32(`${seed}/${stream}`));
  }

  happens(probability: number): boolean {
    return this.#next() < probability;
  }

  /** Both ends included. */
  integer(from: number, to: number): number {
    return from + Math.floor(this.#next() * (to - from + 1));
  }

  pick<T>(values: readonly T[]): T {
    const value = values[this.integer(0, values.length - 1)];
    assert(value !== undefined, "expected something to pick from");
    return value;
  }
}
