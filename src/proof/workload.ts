import type { Delivery } from "../job.ts";
import { Chance } from "../testing/chance.ts";
import type { Script } from "./definitions.ts";

/** A job to be enqueued at some moment of the run. */
export interface PlannedJob {
  readonly id: string;
  readonly delivery: Delivery;
  /** After the start of the run. */
  readonly atMs: number;
  readonly delayMs: number;
  /** How long ago it was due when it is enqueued, as by a late commit or a backfill. */
  readonly lateMs: number;
  /** How long after its enqueueing it is cancelled; null: it is not. */
  readonly cancelAfterMs: number | null;
  readonly script: Script;
}

export interface WorkloadOptions {
  readonly seed: number;
  readonly jobs: number;
  readonly durationMs: number;
  readonly deliveries: readonly Delivery[];
  /** Whether they are published. The handlers then run behind a broker, and none fails; some jobs come late. @default false */
  readonly routed?: boolean;
  /** How many in a hundred take longer, and how long at the most. @default 10 and 300 */
  readonly slow?: { readonly percent: number; readonly ms: number };
}

const longestDelayMs = 2_000;
const latestMs = 5_000;

/**
 * The jobs of a run, in the order of their enqueueing: most of them plain, some delayed, some that fail at first, some that are cancelled,
 * at a moment when they may wait, run or be done. The same options give the same jobs.
 */
export function planJobs(options: WorkloadOptions): PlannedJob[] {
  const { seed, jobs, durationMs, deliveries, routed = false, slow = { percent: 10, ms: 300 } } = options;
  const chance = new Chance(seed, "workload");
  return Array.from({ length: jobs }, (_, index): PlannedJob => {
    const kind = chance.integer(0, 99);
    const delayed = kind < 15 || (kind >= 30 && kind < 38);
    const delayMs = delayed ? chance.integer(50, longestDelayMs) : 0;
    const failures = kind >= 15 && kind < 30 ? chance.integer(1, 2) : 0;
    const lateMs = routed && failures > 1 ? latestMs : 0;
    const cancelAfterMs = kind >= 30 && kind < 40 ? chance.integer(0, delayMs + 50) : null;
    return {
      id: `job-${index}`,
      delivery: chance.pick(deliveries),
      atMs: (index / jobs) * durationMs,
      delayMs,
      lateMs,
      cancelAfterMs,
      script: {
        ms: chance.happens(slow.percent / 100) ? chance.integer(20, slow.ms) : chance.integer(0, 5),
        failures: routed ? 0 : failures,
      },
    };
  });
}
