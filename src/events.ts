import { describe, type ErrorRecord, EscapementError } from "./errors.ts";
import type { JobFacts, JobOutline, JobState } from "./job.ts";
import type { Logger } from "./log.ts";
import { checkOneOf } from "./options.ts";
import type { EnqueueReceipt } from "./receipt.ts";
import type { ClaimedJob } from "./store/claims.ts";
import { withoutTrace } from "./telemetry/trace.ts";

/** What an app reports about its own process. What other processes do is in the store. */
export interface AppEvents {
  enqueued: EnqueueReceipt & { readonly name: string; readonly queue: string };
  started: { readonly job: JobFacts };
  progress: { readonly job: JobFacts; readonly value: unknown };
  /** The success is written. */
  succeeded: { readonly job: JobFacts; readonly result: unknown } & Timing;
  /** Its thread ended in the middle of it; another attempt follows. */
  crashed: { readonly job: JobFacts; readonly reason: string };
  /** An attempt failed; another one follows. */
  failed: { readonly job: JobFacts; readonly error: ErrorRecord; readonly retryInMs: number } & Timing;
  /** The store failed under its `tx`: everything was rolled back, no attempt was used up, and another one follows. */
  rolledBack: { readonly job: JobFacts; readonly error: ErrorRecord; readonly retryInMs: number };
  snoozed: { readonly job: JobFacts; readonly delayMs: number };
  /** Claimed but not started: given back. */
  released: { readonly job: JobFacts };
  dead: { readonly job: JobFacts; readonly reason: string; readonly error: ErrorRecord | null } & Timing;
  lost: { readonly job: JobFacts; readonly reason: string };
  /** With the reason given to `cancel`, if one was. */
  cancelled: { readonly job: JobFacts; readonly reason: string | null };
  /** The store refused a write about a claim that is no longer this process's. */
  stale: { readonly job: JobFacts };
  /** The lease could not be kept: the handler's signal has fired. */
  leaseLost: { readonly job: JobFacts };
  /** The broker has it: the job's success is on its way to the store. */
  published: {
    readonly job: JobFacts;
    readonly transport: string;
    readonly destination: string;
    /** How long the broker took. */
    readonly ms: number;
    /** How long after its time it was handed to the broker, on the store's clock. */
    readonly lateMs: number;
  };
  /** A dispatch to a broker did not go through and will be retried; `phase` says where. */
  dispatchRetry: {
    readonly job: JobOutline;
    readonly phase: DispatchPhase;
    readonly error: ErrorRecord;
    readonly retryInMs: number;
    /** It is unknown whether the broker has it. */
    readonly ambiguous: boolean;
  };
  /** This process's relay gained or gave up a partition, or lost it to another. */
  partition: {
    readonly partition: number;
    readonly epoch: number;
    readonly change: "acquired" | "released" | "lost";
  };
  /** This process's reaper ended what another left behind. */
  reaped: {
    readonly id: string;
    readonly name: string;
    readonly queue: string;
    readonly state: JobState;
    readonly reason: string | null;
  };
  error: { readonly error: unknown; readonly during: string };
}

/** What was measured of an attempt that ran here. */
export interface Timing {
  /** How long the handler took; 0 if none ran here, as for a job that was published. */
  readonly ms: number;
  /** How long after its time the handler started, on the store's clock; null if none ran here (see `published`). */
  readonly lateMs: number | null;
}

/**
 * Where a dispatch to a broker failed. `dispatched_write`: the job could not be named in the store, so nothing was published. `publish`: the
 * broker refused it, or its answer is unknown. `rollback_write`: the rollback could not be written.
 */
export type DispatchPhase = "dispatched_write" | "publish" | "rollback_write";

export type AppEventName = keyof AppEvents;

const appEventNames = [
  "enqueued",
  "started",
  "progress",
  "succeeded",
  "failed",
  "crashed",
  "rolledBack",
  "snoozed",
  "released",
  "dead",
  "lost",
  "cancelled",
  "stale",
  "leaseLost",
  "published",
  "dispatchRetry",
  "partition",
  "reaped",
  "error",
] as const satisfies AppEventName[];

export type AppListener<E extends AppEventName> = (event: AppEvents[E]) => void;

export type Emit = <E extends AppEventName>(name: E, event: AppEvents[E]) => void;

/** The same trouble is logged at most this often. */
const logEveryMs = 10_000;

/** Notifies listeners, one after the other. A listener that throws is logged: it must not bring down what it listens to. */
export class Events {
  readonly #listeners = new Map<AppEventName, Set<(event: never) => void>>();
  /** Listeners that only count: errors that only they receive are still logged. */
  readonly #counters = new Map<AppEventName, ((event: never) => void)[]>();
  readonly #log: Logger;
  readonly #withInputs: boolean;
  readonly #loggedAt = new Map<string, number>();

  /** @param withInputs whether listeners see the inputs of jobs: they often go to logs, and inputs are often personal. */
  constructor(log: Logger, withInputs = false) {
    this.#log = log;
    this.#withInputs = withInputs;
  }

  on<E extends AppEventName>(name: E, listener: AppListener<E>): void {
    checkOneOf(name, appEventNames, "the name of an event");
    if (typeof listener !== "function") {
      throw new EscapementError(
        "invalid-option",
        `expected a listener to be a function, got ${describe(listener)}`,
      );
    }
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
  }

  off<E extends AppEventName>(name: E, listener: AppListener<E>): void {
    this.#listeners.get(name)?.delete(listener);
  }

  /** Whether there are listeners. */
  hears(name: AppEventName): boolean {
    return (this.#listeners.get(name)?.size ?? 0) > 0;
  }

  /** Tells a counter, which must not throw. */
  count<E extends AppEventName>(name: E, counter: AppListener<E>): void {
    this.#counters.set(name, [...(this.#counters.get(name) ?? []), counter]);
  }

  /** An error without a listener must not be silent; repeated errors are logged periodically. */
  #logError({ error, during }: AppEvents["error"]): void {
    const now = performance.now();
    if (now - (this.#loggedAt.get(during) ?? Number.NEGATIVE_INFINITY) < logEveryMs) return;
    this.#loggedAt.set(during, now);
    this.#log.error({ error }, `error while ${during}`);
  }

  emit: Emit = (name, event) => {
    for (const counter of this.#counters.get(name) ?? []) counter(event as never);
    const listeners = this.#listeners.get(name);
    if (listeners === undefined || listeners.size === 0) {
      if (name === "error") this.#logError(event as AppEvents["error"]);
      return;
    }
    const failed = (error: unknown): void => this.#log.error({ event: name, error }, "a listener failed");
    const told = asTold(event, this.#withInputs);
    for (const listener of [...listeners]) {
      try {
        const answer: unknown = listener(told as never);
        if (answer instanceof Promise) answer.catch(failed);
      } catch (error) {
        failed(error);
      }
    }
  };
}

/** A claimed job carries its input along, and its trace among the tags; what the type of an event does not show must not be in it. */
function asTold<E extends AppEvents[AppEventName]>(event: E, withInputs: boolean): E {
  if (!("job" in event)) return event;
  const { job } = event as { readonly job: Partial<ClaimedJob> };
  const hides = !withInputs && "input" in job;
  const hasTrace = job.tags !== undefined && withoutTrace(job.tags) !== job.tags;
  if (!hides && !hasTrace) return event;
  const { input, ...rest } = job;
  const told = hasTrace ? { ...rest, tags: withoutTrace(job.tags ?? []) } : rest;
  return { ...event, job: hides ? told : { ...told, input } };
}
