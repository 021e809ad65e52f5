import assert from "node:assert";
import { seededRandom } from "../../src/testing/seeded-random.ts";

/** Chance of one concern. Each has a stream of its own, so that a draw more in one leaves the others as they were. */
export class Chance {
  readonly next: () => number;

  constructor(seed: number, stream: string) {
    this.next = seededRandom(hash(`${seed}/${stream}`));
  }

  happens(probability: number): boolean {
    return this.next() < probability;
  }

  real(from: number, to: number): number {
    return from + this.next() * (to - from);
  }

  /** Both ends included. */
  integer(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  pick<T>(values: readonly T[]): T {
    const value = values[this.integer(0, values.length - 1)];
    assert(value !== undefined, "expected something to pick from");
    return value;
  }

  /** Picks a name, each as often as its weight says. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K {
    const entries = Object.entries(weights) as [K, number][];
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [name, weight] of entries) {
      left -= weight;
      if (left < 0) return name;
    }
    return this.pick(entries)[0];
  }
}

/** FNV-1a. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    state = Math.imul(state ^ text.charCodeAt(index), 0x01000193);
  }
  return state >>> 0;
}
