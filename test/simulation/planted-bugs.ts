import type { Store } from "../../src/store.ts";

/** A fault of the product, put there on purpose, to see that the simulation finds it. */
export interface PlantedBug {
  readonly name: string;
  /** Between the wire and the store: a store that breaks its contract. */
  readonly below?: (store: Store) => Store;
  /** Between a process and the wire: a worker that breaks its promises. */
  readonly above?: (store: Store) => Store;
  /** Keys of effects that it let through beside the store. */
  readonly effects?: () => readonly string[];
}
