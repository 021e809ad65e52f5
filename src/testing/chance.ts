import assert from "node:assert";
import { seededRandom } from "./seeded-random.ts";

/**
 * Draws that replay with their seed. Each concern has a stream of its own, so one more draw in one leaves the others as
 * they were.
 */
export class Chance {
  /** From 0 up to, not including, 1. */
  readonly next: () => number;

  constructor(seed: number, stream: string) {
    this.next = seededRandom(hash(`${seed}/${stream}`));
  }

  happens(probability: number): boolean {
    return this.next() < probability;
  }

  /** True once in so many times. */
  oneIn(times: number): boolean {
    return this.next() * times < 1;
  }

  real(from: number, to: number): number {
    return from + this.next() * (to - from);
  }

  /** Both ends included. */
  integer(from: number, to: number): number {
    return from + this.below(to - from + 1);
  }

  /** A whole number from 0 up to, not including, the limit. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  pick<T>(choices: readonly T[]): T {
    const choice = this.pickFrom(choices);
    assert(choice !== undefined, "expected something to pick from");
    return choice;
  }

  /** One of what may be an empty list. */
  pickFrom<T>(choices: readonly T[]): T | undefined {
    return choices[this.below(choices.length)];
  }

  /** Each of them with an even chance. */
  some<T>(choices: readonly T[]): T[] {
    return choices.filter(() => this.oneIn(2));
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

  /** So many draws, at least `least` and at most `most`. */
  times<T>(least: number, most: number, draw: () => T): T[] {
    return Array.from({ length: this.integer(least, most) }, draw);
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
