import type { RateLimit } from "./claims.ts";

/** Queues: pausing, limits, and how much of them is used. */
export interface QueueVerbs {
  /** Pauses or resumes a queue, or sets its limits. What is left out stays; null removes a limit. */
  configureQueue(params: QueueChange): Promise<QueueConfig>;

  /** Queues that were configured, by name. */
  queues(): Promise<QueueConfig[]>;

  /** How much of the limits of a queue and of keys is used now. */
  usage(params: UsageParams): Promise<Usage>;
}

export interface QueueConfig {
  readonly queue: string;
  readonly paused: boolean;
  /** Active jobs across all nodes. */
  readonly concurrency: number | null;
  /** Claims across all nodes in a window that starts with its first claim. */
  readonly rate: RateLimit | null;
}

export interface QueueChange {
  readonly queue: string;
  readonly paused?: boolean;
  readonly concurrency?: number | null;
  readonly rate?: RateLimit | null;
}

/** Whose limits to read; null if a job has no such key. */
export interface UsageParams {
  readonly queue: string;
  readonly concurrencyKey: string | null;
  readonly rateKey: string | null;
}

/**
 * What counts against limits. The limits themselves are elsewhere: a queue's in its configuration, a key's with the
 * claimers.
 */
export interface Usage {
  readonly now: Date;
  /** Active jobs of the queue that are not relayed. */
  readonly activeInQueue: number;
  /** Active jobs with the concurrencyKey that are not relayed; 0 if no key was given. */
  readonly activeUnderKey: number;
  /** The queue's rate window; null when none is open. */
  readonly queueWindow: RateWindow | null;
  /** The rateKey's window; null when none is open. */
  readonly keyWindow: RateWindow | null;
}

/** A rate window, as the latest claim that counted left it. It is open from `startedAt` until `perMs` later. */
export interface RateWindow {
  readonly startedAt: Date;
  readonly perMs: number;
  /** Claims so far. */
  readonly used: number;
}
