import type { Bed, Durability } from "../beds/bed.ts";
import type { Finding } from "../scenario.ts";
import type { Target } from "./targets/target.ts";

/** What the scenarios of one pair are run with. */
export interface RelayPlan {
  readonly bed: Bed;
  readonly target: Target;
  readonly durability: Durability;
  readonly runs: number;
  /** Jobs that are due when the clock starts. */
  readonly jobs: number;
  /** For how long jobs become due one after the other, to measure how late they are. */
  readonly seconds: number;
  /** Jobs that are due later, and the few that they are held against. */
  readonly pending: number;
  readonly smallPending: number;
  /** Tells a person how far it is. */
  progress(line: string): void;
}

/** What one scenario may leave for the next. */
export interface Measured {
  /** Jobs fired per second, and jobs enqueued per second before that. */
  readonly sustained: number;
  readonly enqueued: number;
}

export interface RelayScenario {
  readonly name: string;
  run(plan: RelayPlan, before: Measured | null): Promise<{ findings: Finding[]; measured: Measured | null }>;
}
