import type { AnyDefinition } from "../definition.ts";
import { type StopCause, StopReason } from "../handler.ts";
import type { ClaimedJob } from "../store.ts";

/** A claim that this process holds, from the store's answer until its outcome is written. */
export class Held {
  readonly job: ClaimedJob;
  readonly definition: AnyDefinition;
  /** On the monotonic clock. */
  readonly startedAtMs: number;
  /** When the lease ends by our own reckoning: counted from before the call was sent, so never later than the store's. */
  safeUntilMs: number;
  /** Why the handler was told to stop first; later reasons do not change it. */
  stopCause: StopCause | null = null;
  /** Its outcome is decided and on its way to the store; what the handler does from now on changes nothing. */
  recorded = false;
  /** Where its `tx` stands. Once that is on its way the claim may end by it, and the store's calling the claim stale is no loss. */
  transaction: "none" | "open" | "committed" = "none";
  readonly #controller = new AbortController();

  constructor(job: ClaimedJob, definition: AnyDefinition, startedAtMs: number, safeUntilMs: number) {
    this.job = job;
    this.definition = definition;
    this.startedAtMs = startedAtMs;
    this.safeUntilMs = safeUntilMs;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** On the monotonic clock; null without a timeout. */
  get timeoutAtMs(): number | null {
    const { timeoutMs } = this.definition;
    return timeoutMs === null ? null : this.startedAtMs + timeoutMs;
  }

  /** Fires the handler's signal. Returns false when it had fired before. */
  stop(cause: StopCause, message: string): boolean {
    if (this.stopCause !== null) return false;
    this.stopCause = cause;
    this.#controller.abort(new StopReason(cause, message));
    return true;
  }
}
