import { type Clock, systemClock } from "../clock.ts";
import { newId } from "../id.ts";

/** What a process takes from the world: time, chance and names. A simulation owns all three. */
export interface Runtime {
  readonly clock: Clock;
  /** From 0 (inclusive) to 1. */
  random(): number;
  newId(): string;
  /** Told of each store call that failed transiently and is repeated; for a person who waits. */
  readonly onRetry?: (error: unknown) => void;
}

export const systemRuntime: Runtime = {
  clock: systemClock,
  random: Math.random,
  newId: () => newId(Date.now()),
};
