import { type Clock, systemClock } from "../clock.ts";
import { newId } from "../id.ts";

/** What a process takes from the world: time, chance and names. A simulation owns all three. */
export interface Runtime {
  readonly clock: Clock;
  /** From 0 (inclusive) to 1. */
  random(): number;
  newId(): string;
  /** For how long calls to a store that does not answer are repeated, where somebody waits. @default a few tries of each call */
  readonly patience?: Patience;
}

export interface Patience {
  readonly ms: number;
  /** Asked after each call that failed transiently, with how long it has failed; false: it is not repeated. */
  goesOn(error: unknown, forMs: number): boolean;
}

export const systemRuntime: Runtime = {
  clock: systemClock,
  random: Math.random,
  newId: () => newId(Date.now()),
};
