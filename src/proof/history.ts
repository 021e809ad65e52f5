import type { Delivery, JobState } from "../job.ts";
import type { FaultKind } from "../verify-report.ts";
import type { RelayEvidence } from "./relay/evidence.ts";

/**
 * Everything that is known about a run, from outside of the store that is tested. All times are milliseconds of the machine's monotonic
 * clock, which its processes share.
 */
export interface History {
  readonly rules: Rules;
  readonly operations: readonly Operation[];
  readonly lines: readonly LogLine[];
  readonly faults: readonly FaultWindow[];
  /** What the store says at the end, after everything had time to come to rest. */
  readonly jobs: readonly FinalJob[];
  readonly effects: readonly Effect[];
  readonly ledger: readonly LedgerRow[];
  /** Where jobs were published instead of run: what relays wrote down, and what the broker had. Null: handlers ran in the nodes. */
  readonly relay: RelayEvidence | null;
  readonly endedAtMs: number;
}

/** What the run was set to, and what the checker may rely on. */
export interface Rules {
  readonly leaseMs: number;
  readonly pollMs: number;
  readonly nodes: number;
  readonly concurrency: number;
  /** How long a failed attempt waits at least before the next. */
  readonly retryMs: number;
  /** How exactly instants of the store can be compared with the machine's clock. */
  readonly precisionMs: number;
  /** The store's wall clock minus the monotonic clock. */
  readonly wallOffsetMs: number;
  /** Whether an effect commits with the job's success, or with an inbox's marker beside it. */
  readonly effectsWith: "job" | "inbox";
}

interface Call {
  readonly invokedAtMs: number;
  /** When the answer came; for `info` when waiting for it was given up. */
  readonly endedAtMs: number;
  /** `info`: the answer was lost, it may have happened, now or later, or not at all. */
  readonly outcome: "ok" | "fail" | "info";
}

export interface EnqueueCall extends Call {
  readonly kind: "enqueue";
  readonly job: string;
  readonly delivery: Delivery;
  readonly delayMs: number;
  /** How many attempts fail by its script. */
  readonly failures: number;
}

export interface CancelCall extends Call {
  readonly kind: "cancel";
  readonly job: string;
  readonly answer: "cancelled" | "requested" | "terminal" | "unknown" | null;
}

/** A rule of every so many milliseconds, counted from 1970. */
export interface ScheduleCall extends Call {
  readonly kind: "schedule";
  readonly schedule: string;
  readonly delivery: Delivery;
  readonly everyMs: number;
}

export interface UnscheduleCall extends Call {
  readonly kind: "unschedule";
  readonly schedule: string;
}

export type Operation = EnqueueCall | CancelCall | ScheduleCall | UnscheduleCall;

/** What a node wrote down itself, in its own file. */
export interface LogLine {
  /**
   * `start`, `end`: the handler's; `effect`: it is about to commit one. `done`: the store has accepted the success. `stale`: it refused
   * an outcome.
   */
  readonly what: "start" | "end" | "effect" | "done" | "stale";
  /** The process: another one after each restart. */
  readonly node: string;
  readonly job: string;
  readonly token: number;
  readonly atMs: number;
  /** For `start`: when its claim was sent, where that is known. */
  readonly claimedAtMs: number | null;
  /** For `end`: `threw` by its script; `refused`: its transaction was not allowed to commit. */
  readonly how: "returned" | "threw" | "refused" | null;
  readonly schedule: string | null;
  /** Its nominal time on the store's wall clock; for jobs of schedules. */
  readonly fireAt: number | null;
}

export interface FaultWindow {
  /** `stall`: nobody did it, the machine was too busy to let a process run, or the store answer, for a good part of a lease. */
  readonly kind: FaultKind | "stall";
  /** Null: all of them. */
  readonly node: string | null;
  readonly fromMs: number;
  readonly untilMs: number;
  /** For a person: the point at which it was killed, what the network did. */
  readonly detail: string;
}

export interface FinalJob {
  readonly id: string;
  readonly delivery: Delivery;
  readonly state: JobState;
  readonly reason: string | null;
  readonly token: number;
  readonly attempt: number;
  readonly rollbacks: number;
  /** The token of the attempt whose result was kept; null when there is no result. */
  readonly resultToken: number | null;
  readonly schedule: string | null;
  readonly fireAt: number;
}

/** A committed row of the effects' table. */
export interface Effect {
  readonly job: string;
  readonly token: number;
}

export interface LedgerRow {
  readonly schedule: string;
  readonly fireAt: number;
  readonly until: number | null;
  readonly fate: "planned" | "skipped";
  readonly reason: string | null;
  readonly job: string | null;
}
