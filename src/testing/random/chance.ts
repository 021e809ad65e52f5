import { seededRandom } from "../seeded-random.ts";

/** Draws that replay with their seed. */
export class Chance {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  /** True once in so many times. */
  oneIn(times: number): boolean {
    return this.#random() * times < 1;
  }

  /** A whole number from 0 up to, not including, the limit. */
  below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  pick<T>(choices: readonly [T, ...T[]]): T {
    return choices[this.below(choices.length)] ?? choices[0];
  }

  /** One of what may be an empty list. */
  pickFrom<T>(choices: readonly T[]): T | undefined {
    return choices[this.below(choices.length)];
  }

  /** Each of them with an even chance. */
  some<T>(choices: readonly T[]): T[] {
    return choices.filter(() => this.oneIn(2));
  }

  /** So many draws, at least `least` and at most `most`. */
  times<T>(least: number, most: number, draw: () => T): T[] {
    return Array.from({ length: least + this.below(most - least + 1) }, draw);
  }
}
