import { describe, EscapementError } from "../errors.ts";
import type { JobOutline } from "../job.ts";
import type { PublishResult } from "../message/transport.ts";
import type { EnqueueReceipt } from "../receipt.ts";
import type { Instruments } from "./instruments.ts";
import type { Middleware } from "./middleware.ts";
import type { TraceContext } from "./trace.ts";

/** What is about to be enqueued, in one call. */
export interface Enqueuing {
  /** The definition's name; null for jobs of several. */
  readonly name: string | null;
  /** Null for jobs of several queues, and where it is not known. */
  readonly queue: string | null;
  readonly count: number;
}

/** What is about to be handed to a broker. */
export interface Publishing {
  readonly job: JobOutline;
  /** The context kept with the job. */
  readonly trace: TraceContext | null;
  readonly transport: string;
  readonly destination: string;
}

/** What a planner is about to write. */
export interface Planning {
  readonly schedule: string;
  readonly fireAt: Date;
  readonly job: Pick<JobOutline, "id" | "name" | "queue">;
}

/** Something in progress, and the context that travels with it. */
export interface Leg<Result> {
  /** Null: nothing is taken along. */
  readonly trace: TraceContext | null;
  end(result: Result): void;
}

/** Traces and measures an app or a consumer; `openTelemetry()` of `escapement/opentelemetry` is one. None of these may throw. */
export interface Telemetry {
  /** Runs around every handler, outside of all other middleware. */
  readonly middleware: Middleware;
  /** Where figures are counted, beside or instead of `metrics`; null: nowhere. */
  readonly instruments: Instruments | null;
  /** Runs around each enqueue. It calls `write` once, before it returns: a synchronous transaction is over after this turn. */
  enqueuing<R extends EnqueueReceipt | EnqueueReceipt[]>(
    what: Enqueuing,
    write: () => Promise<R>,
  ): Promise<R>;
  /** What to keep with a job that is made now; null: nothing. */
  current(): TraceContext | null;
  /** A relay publishes a job; `unsent` where it was not handed over after all. */
  publishing(what: Publishing): Leg<PublishResult | "unsent">;
  /** A planner plans an occurrence; false if another planner was first. */
  planning(what: Planning): Leg<boolean>;
}

export function checkTelemetry(telemetry: unknown, option: string): Telemetry {
  const isTelemetry = typeof telemetry === "object" && telemetry !== null && "middleware" in telemetry;
  if (isTelemetry) return telemetry as Telemetry;
  throw new EscapementError(
    "invalid-option",
    `expected ${option} to be what openTelemetry() returns, got ${describe(telemetry)}`,
  );
}
