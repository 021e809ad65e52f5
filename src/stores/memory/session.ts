import type { Data } from "./data/data.ts";

/** The store's clock, read once at the start of a verb. */
export interface Moment {
  readonly now: number;
  readonly monotonic: number;
}

/** What a verb works with. */
export interface Session extends Moment {
  readonly data: Data;
}
