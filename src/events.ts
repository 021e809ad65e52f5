import type { ErrorRecord } from "./errors.ts";
import type { JobFacts, JobState } from "./job.ts";
import type { Logger } from "./log.ts";
import type { EnqueueReceipt } from "./receipt.ts";

/** What an app tells about its own process. What other processes do is asked of the store. */
export interface AppEvents {
  enqueued: EnqueueReceipt & { readonly name: string };
  started: { readonly job: JobFacts };
  progress: { readonly job: JobFacts; readonly value: unknown };
  /** The success is written. */
  succeeded: { readonly job: JobFacts; readonly result: unknown; readonly ms: number };
  /** A try failed; another one follows. */
  failed: { readonly job: JobFacts; readonly error: ErrorRecord; readonly retryInMs: number };
  snoozed: { readonly job: JobFacts; readonly delayMs: number };
  /** Claimed but not started: given back. */
  released: { readonly job: JobFacts };
  dead: { readonly job: JobFacts; readonly reason: string; readonly error: ErrorRecord | null };
  lost: { readonly job: JobFacts; readonly reason: string };
  cancelled: { readonly job: JobFacts };
  /** The store refused a write about a claim that is no longer this process's. */
  stale: { readonly job: JobFacts };
  /** The lease could not be kept: the handler's signal has fired. */
  leaseLost: { readonly job: JobFacts };
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

export type AppEventName = keyof AppEvents;

export type AppListener<E extends AppEventName> = (event: AppEvents[E]) => void;

export type Emit = <E extends AppEventName>(name: E, event: AppEvents[E]) => void;

/** Tells listeners, one after the other. A listener that throws is logged: it must not bring down what it listens to. */
export class Events {
  readonly #listeners = new Map<AppEventName, Set<(event: never) => void>>();
  readonly #log: Logger;

  constructor(log: Logger) {
    this.#log = log;
  }

  on<E extends AppEventName>(name: E, listener: AppListener<E>): void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
  }

  off<E extends AppEventName>(name: E, listener: AppListener<E>): void {
    this.#listeners.get(name)?.delete(listener);
  }

  emit: Emit = (name, event) => {
    const listeners = this.#listeners.get(name);
    if (listeners === undefined) return;
    for (const listener of [...listeners]) {
      try {
        listener(event as never);
      } catch (error) {
        this.#log.error({ event: name, error }, "a listener threw");
      }
    }
  };
}
