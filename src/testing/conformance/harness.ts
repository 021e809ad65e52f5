import type { Store } from "../../store/store.ts";

/** What the author of a store gives to the suite. */
export interface ConformanceHarness {
  /**
   * A handle, migrated, on a namespace that holds nothing when it is asked for the first time. Handles of one namespace share
   * its data, as two processes would.
   */
  open(namespace?: string): Promise<Store>;
  /** Moves the store's clocks, wall and monotonic, forward. Between two calls they may stand still or flow. */
  advance(ms: number): Promise<void>;
  close(): Promise<void>;
}

export interface ConformanceOptions {
  /** How the store, or this variant of it, is called in the names of the tests. */
  readonly name: string;
  readonly open: () => Promise<ConformanceHarness>;
  /** For a store in the making: only the concerns without which no job runs. Left out: all of the contract. */
  readonly only?: "core";
  /** Runs only every nth test: enough for a variant of a store that otherwise passes all of them. @default 1 */
  readonly everyNth?: number;
}
