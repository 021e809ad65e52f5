import type { ErrorRecord } from "./errors.ts";
import type { TraceContext } from "./telemetry/trace.ts";

/** How often a job may be dispatched, and what happens when the outcome is unknown. See docs/GUARANTEES.md. */
export type Delivery = "at-most-once" | "at-least-once" | "effectively-once";

export const deliveries = ["at-most-once", "at-least-once", "effectively-once"] as const satisfies Delivery[];

/** The state of a job. `waiting` covers "due later": due means `runAt <= store now`. */
export type JobState = "blocked" | "waiting" | "active" | "succeeded" | "dead" | "lost" | "cancelled";

export const jobStates = [
  "blocked",
  "waiting",
  "active",
  "succeeded",
  "dead",
  "lost",
  "cancelled",
] as const satisfies JobState[];

/** What every view of a job has in common. Instants are on the store's clock. */
export interface JobFacts {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly delivery: Delivery;
  /** Higher runs first. */
  readonly priority: number;
  readonly tags: readonly string[];
  /** When it may be dispatched next; a retry or a snooze moves it. */
  readonly runAt: Date;
  /** When it was nominally due; retries never move it. */
  readonly fireAt: Date;
  readonly enqueuedAt: Date;
  /** The number of the latest attempt, 1 for the first; 0 before it. Releases and snoozes give their number back. */
  readonly attempt: number;
  /** How many attempts may fail before the job is dead. Crashes are counted separately. */
  readonly attempts: number;
  /** How many claims of it ended without a report from their holder. */
  readonly crashes: number;
  /** The crash that makes it dead as poison. */
  readonly maxCrashes: number;
  /** How often a person sent it back from `dead` or `lost`. */
  readonly redrives: number;
  /** Rises by one with every claim. */
  readonly token: number;
  /** The schedule that produced it, if one did. */
  readonly schedule: string | null;
  /** Fields whose stored value this library did not write: each has a placeholder. Left out if there are none. */
  readonly unreadable?: readonly string[];
}

/** What it takes to know which job is meant, and when it goes. */
export type JobOutline = Pick<JobFacts, "id" | "name" | "queue" | "delivery" | "runAt" | "token">;

/** A job as `get` and `list` show it. */
export interface Job<Input = unknown, Result = unknown> extends JobFacts {
  readonly state: JobState;
  /** Why it is in this state, in plain words, if that is not obvious. */
  readonly reason: string | null;
  readonly input: Input;
  readonly result: Result | null;
  /** The latest error, kept also after a later success. */
  readonly error: ErrorRecord | null;
  readonly progress: unknown;
  readonly expireAt: Date | null;
  readonly rollbacks: number;
  /** Whether it is published to its route by a relay, instead of run by a worker. */
  readonly relayed: boolean;
  /** Rises with every edit. */
  readonly version: number;
  /** The node that claimed it last. */
  readonly claimer: string | null;
  readonly claimedAt: Date | null;
  readonly finishedAt: Date | null;
  readonly cancelRequested: boolean;
  /** The jobs it still waits for. */
  readonly waitsFor: readonly string[];
  readonly concurrencyKey: string | null;
  readonly rateKey: string | null;
  /** Its trace context, from the caller that enqueued it. Left out if there is none. */
  readonly trace?: TraceContext;
}
