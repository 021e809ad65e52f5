import { writeFileSync } from "node:fs";
import type { Delivery } from "./job.ts";
import { readSmallFile } from "./runtime/small-file.ts";

/** Where `escapement verify` leaves its last report in a project, and where the API looks for it. */
export const verifyReportFile = "escapement-verify.json";

/**
 * What can be done to a run. `network` is the way to the store, `broker` the way from relays to the broker, `both` the two at once;
 * `broker-restart` also kills a leader. `publish` is the drill: publishes, and the writes before and after them, fail on purpose.
 */
export const faultKinds = [
  "kill",
  "pause",
  "network",
  "clock",
  "restart",
  "block",
  "broker",
  "both",
  "broker-restart",
  "publish",
] as const;

export type FaultKind = (typeof faultKinds)[number];

/** The result of a run of `escapement verify`, in short. */
export interface VerifyReport {
  readonly at: string;
  readonly valid: boolean;
  /** What repeats the run. */
  readonly command: string;
  readonly engine: string;
  readonly durationMs: number;
  readonly guarantees: readonly VerifiedGuarantee[];
  /** How many faults of each kind there were. */
  readonly faults: Readonly<Record<string, number>>;
  readonly staleRefused: number;
  /** How long interrupted jobs waited until they ran again. */
  readonly recovery: { readonly count: number; readonly p50Ms: number; readonly p99Ms: number };
  /** How many there were, and the first of them. */
  readonly violationCount: number;
  readonly violations: readonly VerifiedViolation[];
}

export interface VerifiedGuarantee {
  readonly delivery: Delivery;
  readonly jobs: number;
  readonly dispatches: number;
  /** Second dispatches that a fault explains. */
  readonly reruns: number;
  readonly succeeded: number;
  /** Lost with a reason, as at-most-once must after a fault. */
  readonly givenUp: number;
  readonly effects: number;
  readonly broken: number;
}

export interface VerifiedViolation {
  readonly kind: string;
  readonly subject: string;
  readonly detail: string;
}

export function writeVerifyReport(path: string, report: VerifyReport): void {
  writeFileSync(path, `${JSON.stringify(report, null, 2)}\n`);
}

/** What the file holds, not checked yet; undefined if there is none. */
export function readVerifyReport(path: string): unknown {
  try {
    return JSON.parse(readSmallFile(path));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
