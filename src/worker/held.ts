import type { AnyDefinition } from "../definition.ts";
import type { Timing } from "../events.ts";
import { type StopCause, StopReason } from "../handler.ts";
import type { ClaimedJob } from "../store/claims.ts";
import type { RunningJob } from "../store/nodes.ts";
import type { Renewal } from "./renewer.ts";

/** A claim that this process holds, from the store's answer until its outcome is written. */
export class Held {
  readonly job: ClaimedJob;
  readonly definition: AnyDefinition;
  /** When the store's answer arrived, on the monotonic clock. */
  readonly claimedAtMs: number;
  /** When it was due by the store's clock, as an instant of the monotonic clock. */
  readonly dueAtMs: number;
  /** When its handler was called, on the monotonic clock; before that, as if it had been at once. */
  startedAtMs: number;
  /** Since when the heartbeat has known of it, on the monotonic clock; before that, never. */
  keptSinceMs = Number.POSITIVE_INFINITY;
  /**
   * When the lease ends by our own reckoning: counted from before the call was sent, so never later than the store's.
   */
  safeUntilMs: number;
  /** Why the handler must stop; see {@link stop} for which of several reasons counts. */
  stopCause: StopCause | null = null;
  /** Its outcome is decided and on its way to the store; what the handler does from now on changes nothing. */
  recorded = false;
  /**
   * The state of its `tx`. Once that has been sent, the claim may end by it, and a stale answer from the store is no
   * loss.
   */
  transaction: "none" | "open" | "committed" = "none";
  #controllerMade: AbortController | null = null;
  #endControllerMade: AbortController | null = null;

  /** @param storeNowMs the store's time when it answered. */
  constructor(
    job: ClaimedJob,
    definition: AnyDefinition,
    claimedAtMs: number,
    safeUntilMs: number,
    storeNowMs: number,
  ) {
    this.job = job;
    this.definition = definition;
    this.claimedAtMs = claimedAtMs;
    this.dueAtMs = claimedAtMs - (storeNowMs - job.runAt.getTime());
    this.startedAtMs = claimedAtMs;
    this.safeUntilMs = safeUntilMs;
  }

  /** Created on first use, because it is not cheap and most handlers never read it. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Fires when the handler must not continue at all, which a mere cancel does not require: a thread is then ended. */
  get endSignal(): AbortSignal {
    return this.#endController.signal;
  }

  /** Whether the store would still take what the handler reports. */
  get mayReport(): boolean {
    return !this.recorded && this.transaction !== "committed";
  }

  /** Nothing that this process has sent can have ended the claim. */
  get isUnderWay(): boolean {
    return this.transaction === "none" && !this.recorded;
  }

  /** The heartbeat keeps its lease: it has started, or is about to. */
  get isKept(): boolean {
    return Number.isFinite(this.keptSinceMs);
  }

  /** Its progress so far, at this moment of the monotonic clock. */
  timingAt(nowMs: number): Timing {
    return { ms: nowMs - this.startedAtMs, lateMs: Math.max(0, this.startedAtMs - this.dueAtMs) };
  }

  /** On the monotonic clock; null without a timeout. */
  get timeoutAtMs(): number | null {
    const { timeoutMs } = this.definition;
    return timeoutMs === null ? null : this.startedAtMs + timeoutMs;
  }

  /**
   * Fires the handler's signal; false when that changes nothing. A cancel only asks, so whatever comes after it still
   * counts: a cancelled handler that does not listen times out like any other.
   */
  stop(cause: StopCause, message: string): boolean {
    if (this.stopCause !== null && (this.stopCause !== "cancelled" || cause === "cancelled")) return false;
    this.stopCause = cause;
    const reason = new StopReason(cause, message);
    this.#controller.abort(reason);
    if (cause !== "cancelled") this.#endController.abort(reason);
    return true;
  }

  get #controller(): AbortController {
    this.#controllerMade ??= new AbortController();
    return this.#controllerMade;
  }

  get #endController(): AbortController {
    this.#endControllerMade ??= new AbortController();
    return this.#endControllerMade;
  }
}

export function asRenewal(held: Held): Renewal {
  return { id: held.job.id, token: held.job.token, timeoutAtMs: held.timeoutAtMs };
}

/** What has run for at least `leastMs`, the longest first, with what is left of each lease. */
export function longestRunning(running: Iterable<Held>, leastMs: number, nowMs: number): RunningJob[] {
  return [...running]
    .filter((held) => nowMs - held.startedAtMs >= leastMs)
    .toSorted((a, b) => a.startedAtMs - b.startedAtMs)
    .map(({ job: { id, name }, startedAtMs, safeUntilMs }) => ({
      id,
      name,
      forMs: Math.round(nowMs - startedAtMs),
      leaseMs: Math.round(safeUntilMs - nowMs),
    }));
}
