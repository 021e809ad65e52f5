import type { Outbox, Sending } from "../claims/outbox.ts";
import { EscapementError, isTransient } from "../errors.ts";
import type { Emit } from "../events.ts";
import { RepeatDelay } from "../runtime/repeat-delay.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { reconnectDelayMs } from "../runtime/transient.ts";
import { Wakeup } from "../runtime/wakeup.ts";
import type { Settings } from "../settings.ts";
import { isFragile } from "../state.ts";
import type { ClaimedJob, ClaimName, ClaimParams, ClaimResult } from "../store/claims.ts";
import type { Store } from "../store/store.ts";
import type { Held } from "./held.ts";

/** What the claimer must know about the jobs of this process. */
export interface Slots {
  /** How many run now. */
  running(): number;
  runningIn(queue: string): number;
  /** How many were claimed ahead and wait for room. */
  ready(): number;
  /** How many should, by how fast handlers are. */
  wanted(): number;
  /** Whether handlers may start: not before all of the process is ready. */
  isOpen(): boolean;
}

export interface ClaimerParts {
  readonly store: Store;
  readonly claimer: string;
  readonly settings: Settings;
  readonly runtime: Runtime;
  readonly names: readonly ClaimName[];
  /** Null: all queues. */
  readonly queues: readonly { readonly queue: string; readonly concurrency: number | null }[] | null;
  readonly slots: Slots;
  readonly outbox: Outbox<Held>;
  readonly emit: Emit;
  /** An outcome that the store cannot take was dropped; the lease of its job will expire. */
  onGivenUp(held: Held): void;
  /**
   * Starts jobs, or gives them back; `sentAtMs` is when the claim was sent, on the monotonic clock, `storeNow` the
   * store's time of it.
   */
  onClaimed(jobs: readonly ClaimedJob[], sentAtMs: number, storeNow: Date): void;
}

/** Claiming status. Instants are on the monotonic clock. */
export interface ClaimerStatus {
  /** When the loop last ran; null before the first time. */
  readonly turnedAtMs: number | null;
  /** When a claim was last answered; null before the first time. */
  readonly claimedAtMs: number | null;
  /** How many consecutive trips the store did not answer. */
  readonly failures: number;
  /** Why not, the last time. */
  readonly error: unknown;
  /** How many definitions can be claimed for. */
  readonly names: number;
  /** There is no room for another job now. */
  readonly isFull: boolean;
}

/** Whether what was to be written is at fault, and not the store. */
function isOutcomesFault(error: unknown): boolean {
  return !(error instanceof EscapementError) || !error.code.startsWith("store-");
}

/** How many leases to work normally between two attempts to become idle. */
const drainPauseLeases = 4;

/** How far jobs claimed ahead may run down before more are claimed: a trip for each would cost more than it saves. */
const refillBelow = 0.5;

/**
 * The loop between this process and the store. A trip carries outcomes there and new jobs back; while one that claims
 * is in flight, one more may carry outcomes. A claim whose reply is lost is repeated unchanged: the same sequence, so
 * the same jobs. So there is never a second claim in flight.
 */
export class Claimer {
  readonly #parts: ClaimerParts;
  readonly #wakeup: Wakeup;
  #sequence = 0;
  /** Sent, but not answered; with when it was first sent, since its leases may have begun then. */
  #unanswered: { readonly claim: ClaimParams; readonly sentAtMs: number } | null = null;
  /** Which trips are in flight: one that claims, one with outcomes alone. */
  readonly #underWay = { claiming: false, finishing: false };
  #claiming = true;
  #ended = false;
  #forced = false;
  #failures = 0;
  #error: unknown = null;
  #turnedAtMs: number | null = null;
  #claimedAtMs: number | null = null;
  /** On the monotonic clock: after a failure, when to retry. */
  #pausedUntilMs = 0;
  /** On the monotonic clock: when to ask the store again if nothing else happens. */
  #askAtMs = 0;
  /** For claims that take nothing although something is due. */
  readonly #repeatDelay = new RepeatDelay();
  /** The last claim returned as many as it asked for, so there may be more to claim ahead. */
  #hasMore = false;
  /** A notice has come since the last claim was sent: the claim's answer may be older than it. */
  #isHinted = false;
  /** On the monotonic clock: until when this process takes nothing, to be idle for a fragile job that waits. */
  #drainUntilMs = Number.NEGATIVE_INFINITY;
  /** A fragile job runs here, alone. */
  #exclusive: string | null = null;

  constructor(parts: ClaimerParts) {
    this.#parts = parts;
    this.#wakeup = new Wakeup(parts.runtime.clock);
  }

  get status(): ClaimerStatus {
    const { settings, slots, names } = this.#parts;
    const running = slots.running() + slots.ready();
    const isFull = running >= settings.concurrency || this.#exclusive !== null || this.#isDraining();
    return {
      turnedAtMs: this.#turnedAtMs,
      claimedAtMs: this.#claimedAtMs,
      failures: this.#failures,
      error: this.#error,
      names: names.length,
      isFull,
    };
  }

  /** Something may be claimable: ask at the next turn. */
  requestClaim(): void {
    this.#askAtMs = 0;
    this.#isHinted = true;
    this.#wakeup.wake();
  }

  /** An outcome is ready, a slot is free. */
  settled(id: string): void {
    if (this.#exclusive === id) this.#exclusive = null;
    this.#wakeup.wake();
  }

  /** No new jobs from now on; outcomes are still written. */
  stopClaiming(): void {
    this.#claiming = false;
    this.#wakeup.wake();
  }

  /** Ends the loop once every outcome is written and every claim answered; with `force`, also at a trip that fails. */
  end(force: boolean): void {
    this.#claiming = false;
    this.#ended = true;
    this.#forced = force;
    this.#wakeup.wake();
  }

  async run(): Promise<void> {
    while (!this.#isOver()) {
      if (!this.#depart()) await this.#wakeup.wait(this.#idleMs());
    }
  }

  /** Sends what there is to send. False when that is nothing, or must wait for a trip in flight. */
  #depart(): boolean {
    const nowMs = this.#parts.runtime.clock.monotonic();
    this.#turnedAtMs = nowMs;
    if (nowMs < this.#pausedUntilMs) return false;
    const claim = this.#underWay.claiming ? null : this.#nextClaim();
    if (claim === null && (this.#underWay.finishing || this.#parts.outbox.waiting === 0)) return false;
    void this.#travel(claim);
    return true;
  }

  async #travel(claim: ClaimParams | null): Promise<void> {
    const { runtime } = this.#parts;
    const way = claim === null ? "finishing" : "claiming";
    this.#underWay[way] = true;
    const isAnswered = await this.#trip(claim);
    this.#underWay[way] = false;
    this.#failures = isAnswered ? 0 : this.#failures + 1;
    if (isAnswered && claim !== null) this.#claimedAtMs = runtime.clock.monotonic();
    if (!isAnswered)
      this.#pausedUntilMs = runtime.clock.monotonic() + reconnectDelayMs(this.#failures, runtime.random());
    this.#wakeup.wake();
  }

  #isOver(): boolean {
    if (!this.#ended || this.#underWay.claiming || this.#underWay.finishing) return false;
    // A slow trip that succeeds after all may have brought claims, which the next one gives back.
    if (this.#forced && this.#failures > 0) return true;
    return this.#parts.outbox.isEmpty && this.#unanswered === null;
  }

  /** The claim to send, or null when this process wants nothing, or has no room, or may not claim. */
  #nextClaim(): ClaimParams | null {
    // An unanswered claim may have taken jobs: it is repeated even when stopping, so they can be given back.
    if (this.#unanswered !== null) return this.#unanswered.claim;
    const { settings, slots, names, claimer, outbox, runtime } = this.#parts;
    const running = slots.running() + slots.ready();
    const isOpen = slots.isOpen();
    const free = isOpen ? Math.max(0, Math.min(settings.concurrency - running, settings.batch)) : 0;
    const wanted = this.#askAtMs <= runtime.clock.monotonic() || outbox.waiting > 0;
    if (!this.#claiming || !wanted || names.length === 0) return null;
    if (this.#exclusive !== null || (this.#isDraining() && running > 0)) return null;
    const ahead = isOpen ? this.#aheadOf(free) : this.#firstAhead();
    if (free + ahead === 0) return null;
    const queues = this.#queueLimits(free, ahead);
    if (queues !== null && queues.length === 0) return null;
    this.#sequence += 1;
    return {
      claimer,
      sequence: this.#sequence,
      leaseMs: settings.leaseMs,
      limit: free,
      ahead,
      queues,
      names,
      alone: isOpen && running === 0,
    };
  }

  /**
   * The first claim is sent before handlers may start, and only claims ahead: if the process dies then, no job counts
   * a crash, and none is lost.
   */
  #firstAhead(): number {
    const { settings, queues } = this.#parts;
    const isLimited = queues?.some(({ concurrency }) => concurrency !== null) ?? false;
    if (this.#sequence > 0 || settings.lookAheadMs === 0 || isLimited) return 0;
    return Math.min(settings.concurrency, settings.batch);
  }

  /**
   * How many to claim ahead; without room for another job, only if there were more the last time, and not for a few.
   */
  #aheadOf(free: number): number {
    const { slots, queues } = this.#parts;
    // If this process limits a queue, what waits here would count against that limit.
    if (queues?.some(({ concurrency }) => concurrency !== null) || this.#isDraining()) return 0;
    const wanted = slots.wanted();
    const lacking = wanted - slots.ready();
    if (lacking <= 0) return 0;
    return free > 0 || (this.#hasMore && slots.ready() <= wanted * refillBelow) ? lacking : 0;
  }

  #queueLimits(free: number, ahead: number): ClaimParams["queues"] {
    const { queues, slots } = this.#parts;
    if (queues === null) return null;
    return queues
      .map(({ queue, concurrency }) => ({
        queue,
        limit: concurrency === null ? free + ahead : Math.min(free, concurrency - slots.runningIn(queue)),
      }))
      .filter(({ limit }) => limit > 0);
  }

  /** One trip. Returns false when the store did not answer; everything stays as it was, to be sent again. */
  async #trip(claim: ClaimParams | null): Promise<boolean> {
    const { store, claimer, outbox, runtime, emit } = this.#parts;
    if (outbox.owesReports) await outbox.writeReports();
    const sending = outbox.take();
    const { finishes } = sending;
    try {
      if (claim !== null) {
        const sentAtMs = this.#unanswered?.sentAtMs ?? runtime.clock.monotonic();
        this.#unanswered = { claim, sentAtMs };
        this.#isHinted = false;
        const { finished, claimed } = await store.step({ finishes, claim });
        outbox.written(sending, finished);
        this.#unanswered = null;
        this.#receive(claimed, claim, sentAtMs);
      } else if (finishes.length > 0) {
        outbox.written(sending, await store.finish({ claimer, finishes }));
      }
      return true;
    } catch (error) {
      this.#error = error;
      if (finishes.length > 0 && isOutcomesFault(error)) this.#narrow(sending);
      else outbox.putBack(sending);
      if (!isTransient(error) || this.#failures === 0)
        emit("error", { error, during: "claiming and finishing" });
      return false;
    }
  }

  #isDraining(): boolean {
    return this.#parts.runtime.clock.monotonic() < this.#drainUntilMs;
  }

  /**
   * Claims nothing for a lease, so the process may become idle. A handler that takes longer must not stop everything for
   * one job: then others are claimed again for a while, and the fragile one waits for another node, or the next lull.
   */
  #drain(isWanted: boolean): void {
    const { runtime, settings } = this.#parts;
    const now = runtime.clock.monotonic();
    if (!isWanted) this.#drainUntilMs = Number.NEGATIVE_INFINITY;
    else if (now > this.#drainUntilMs + drainPauseLeases * settings.leaseMs)
      this.#drainUntilMs = now + settings.leaseMs;
  }

  #narrow(sending: Sending<Held>): void {
    const given = this.#parts.outbox.narrow(sending);
    if (given !== null) this.#parts.onGivenUp(given);
  }

  #receive(claimed: ClaimResult, claim: ClaimParams, sentAtMs: number): void {
    const { onClaimed, slots, runtime, settings } = this.#parts;
    const [first] = claimed.jobs;
    if (first !== undefined && claimed.jobs.length === 1 && isFragile(first)) this.#exclusive = first.id;
    onClaimed(claimed.jobs, sentAtMs, claimed.now);
    this.#drain(claimed.fragile && slots.running() > 0);
    this.#hasMore = claimed.jobs.length >= claim.limit + (claim.ahead ?? 0);
    if (this.#hasMore || this.#isHinted) {
      this.#askAtMs = 0;
      return;
    }
    const dueInMs =
      claimed.nextAt === null ? settings.pollMs : claimed.nextAt.getTime() - claimed.now.getTime();
    const isFruitless = claimed.jobs.length === 0 && dueInMs <= 0;
    if (!isFruitless) this.#repeatDelay.reset();
    const waitMs = isFruitless
      ? this.#repeatDelay.nextMs(settings.pollMs)
      : Math.min(dueInMs, settings.pollMs);
    this.#askAtMs = runtime.clock.monotonic() + waitMs;
  }

  #idleMs(): number {
    const { settings, runtime } = this.#parts;
    const now = runtime.clock.monotonic();
    if (now < this.#pausedUntilMs) return this.#pausedUntilMs - now;
    const waitMs = this.#askAtMs - now;
    // Overdue and yet not asking means that there is no room: a job that ends will wake the loop.
    return waitMs <= 0 ? settings.pollMs : Math.min(waitMs, settings.pollMs);
  }
}
