import type { Delivery } from "../job.ts";

/**
 * How a guarantee can be broken. `lost`: acknowledged, and not done as promised. `duplicated`: more often than promised. `phantom`: never
 * asked for. `early`: before its time. `stale-accepted`: the word of a holder that had lost its claim was taken. `stuck`: neither done
 * nor given up in the end. `cancelled-ran`: it ran although its cancel was confirmed. `token`: a token was used twice or fell.
 * `missed`: an occurrence without a run. `slow`: the recovery took too long. `epoch`: a relay that had lost its partition went on.
 * `rollback`: one used up an attempt, or was not counted once.
 */
export const violationKinds = [
  "lost",
  "duplicated",
  "phantom",
  "early",
  "stale-accepted",
  "stuck",
  "cancelled-ran",
  "token",
  "missed",
  "slow",
  "epoch",
  "rollback",
] as const;

export type ViolationKind = (typeof violationKinds)[number];

export interface Violation {
  readonly kind: ViolationKind;
  /** Null if it concerns none in particular. */
  readonly delivery: Delivery | null;
  /** A job, an occurrence or a schedule. */
  readonly subject: string;
  readonly detail: string;
  /** Where it belongs on the time line, if anywhere. */
  readonly atMs: number | null;
}
