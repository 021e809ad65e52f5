import type { StoreAddress, StoreFactory } from "../../src/store/opening.ts";

/** Whether an acknowledged write survives a power failure. */
export type Durability = "full" | "normal";

/** A job of the raw loop: what is left when everything that can be left out is. */
export interface RawJob {
  readonly id: string;
  readonly input: string;
}

/**
 * What somebody would write by hand for this one purpose, on the same server or folder with the same durability, as fast
 * as it honestly gets. It is what our own figures are held against.
 */
export interface RawLoop {
  /** Inserts jobs that are due now, `chunk` in a transaction. */
  insert(jobs: readonly RawJob[], chunk: number): Promise<void>;
  /** Claims and finishes `batch` jobs a trip until none is left, and calls `run` for each. Returns how many trips it took. */
  drain(batch: number, run: (job: RawJob) => void): Promise<number>;
  /**
   * Reads the `batch` jobs that have been due longest, waits for `run` and deletes them, until none is left: what a
   * relay would do to the store if nothing could ever go wrong. Returns how many trips it took.
   */
  sweep(batch: number, run: (jobs: readonly RawJob[]) => void | Promise<void>): Promise<number>;
  count(): Promise<{ readonly left: number; readonly finished: number }>;
  close(): Promise<void>;
}

/** A fresh, empty place for one measurement. */
export interface Place extends AsyncDisposable {
  readonly store: StoreFactory;
  /** The same store for another process. */
  readonly address: StoreAddress;
  openRaw(): Promise<RawLoop>;
  /**
   * Copies each of these waiting jobs so often, each copy with an id of its own and due a little later than the one before, in
   * the slot of the first. Only for backlogs, which through the front door would take longer to build than everything else together.
   */
  multiply(ids: readonly string[], copies: number): Promise<void>;
}

/** A store to be measured. Another one is another entry in `beds`. */
export interface Bed {
  readonly name: string;
  /** Lines for the report: engine and version, what one durable write costs here. */
  describe(durability: Durability): Promise<Readonly<Record<string, string>>>;
  open(durability: Durability): Promise<Place>;
  readonly goals: Goals;
  close(): Promise<void>;
}

/** Parts of the raw loop's rate, at the least; for claims, times the cost with a small backlog, at the most. */
export interface Goals {
  readonly drain: number;
  readonly enqueueConcurrent: number;
  readonly enqueueMany: number;
  readonly claimCost: number;
}
