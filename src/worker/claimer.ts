import { EscapementError, isTransient } from "../errors.ts";
import type { Emit } from "../events.ts";
import type { Runtime } from "../runtime.ts";
import type { Settings } from "../settings.ts";
import { isFragile } from "../state.ts";
import type { ClaimedJob, ClaimName, ClaimParams, ClaimResult, Store } from "../store.ts";
import { reconnectDelayMs } from "../transient.ts";
import { Wakeup } from "../wakeup.ts";
import type { Held } from "./held.ts";
import type { Outbox } from "./outbox.ts";

/** What the claimer must know about the jobs that run. */
export interface Slots {
  /** How many run now. */
  running(): number;
  runningIn(queue: string): number;
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
  readonly outbox: Outbox;
  readonly emit: Emit;
  /** An outcome that the store cannot take was given up; the lease of its job will run out. */
  onGivenUp(held: Held): void;
  /** Starts jobs, or gives them back; `sentAtMs` is when the claim was asked for, on the monotonic clock. */
  onClaimed(jobs: readonly ClaimedJob[], sentAtMs: number): void;
}

/** Whether it is what was to be written that the store cannot take, and not the store that is in trouble. */
function isOutcomesFault(error: unknown): boolean {
  return !(error instanceof EscapementError) || !error.code.startsWith("store-");
}

/** How many leases to work normally between two attempts to become idle. */
const drainPauseLeases = 4;

/** A claim that found nothing although the store said "now": do not ask again in a tight circle. */
const minRepeatMs = 20;

/**
 * The loop between this process and the store: one trip at a time carries outcomes there and new jobs back.
 * A trip whose reply is lost is repeated as it was: the same sequence, so the same claims.
 */
export class Claimer {
  readonly #parts: ClaimerParts;
  readonly #wakeup: Wakeup;
  #sequence = 0;
  /** Sent, and not answered; with when it was sent first, since that is when its leases may have begun. */
  #unanswered: { readonly claim: ClaimParams; readonly sentAtMs: number } | null = null;
  #claiming = true;
  #ended = false;
  #forced = false;
  #failures = 0;
  /** On the monotonic clock: when to ask the store again if nothing else happens. */
  #askAtMs = 0;
  /** Told, since the last claim was sent, that there may be something: its answer may be older than that. */
  #isHinted = false;
  /** On the monotonic clock: until when this process takes nothing, to be idle for a fragile job that waits. */
  #drainUntilMs = Number.NEGATIVE_INFINITY;
  /** A fragile job runs here, alone. */
  #exclusive: string | null = null;

  constructor(parts: ClaimerParts) {
    this.#parts = parts;
    this.#wakeup = new Wakeup(parts.runtime.clock);
  }

  /** Something may be claimable: ask at the next turn. */
  hungry(): void {
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
    const { outbox, runtime } = this.#parts;
    while (!this.#isOver()) {
      const claim = this.#nextClaim();
      if (claim === null && outbox.isEmpty) {
        await this.#wakeup.wait(this.#idleMs());
      } else if (await this.#trip(claim)) {
        this.#failures = 0;
      } else {
        this.#failures += 1;
        await this.#wakeup.pause(reconnectDelayMs(this.#failures, runtime.random()));
      }
    }
  }

  #isOver(): boolean {
    if (!this.#ended) return false;
    // A slow trip that succeeds after all may have brought claims, which the next one gives back.
    if (this.#forced && this.#failures > 0) return true;
    return this.#parts.outbox.isEmpty && this.#unanswered === null;
  }

  /** The claim to send, or null when this process wants nothing, or has no room, or not the right. */
  #nextClaim(): ClaimParams | null {
    // An unanswered claim may have taken jobs: it is repeated also when stopping, so that they can be given back.
    if (this.#unanswered !== null) return this.#unanswered.claim;
    const { settings, slots, names, claimer, outbox, runtime } = this.#parts;
    const running = slots.running();
    const free = Math.min(settings.concurrency - running, settings.batch);
    const wanted = this.#askAtMs <= runtime.clock.monotonic() || !outbox.isEmpty;
    if (!this.#claiming || !wanted || free <= 0 || names.length === 0) return null;
    if (this.#exclusive !== null || (this.#isDraining() && running > 0)) return null;
    const queues = this.#queueLimits(free);
    if (queues !== null && queues.length === 0) return null;
    this.#sequence += 1;
    return {
      claimer,
      sequence: this.#sequence,
      leaseMs: settings.leaseMs,
      limit: free,
      queues,
      names,
      alone: running === 0,
    };
  }

  #queueLimits(free: number): ClaimParams["queues"] {
    const { queues, slots } = this.#parts;
    if (queues === null) return null;
    return queues
      .map(({ queue, concurrency }) => ({
        queue,
        limit: concurrency === null ? free : Math.min(free, concurrency - slots.runningIn(queue)),
      }))
      .filter(({ limit }) => limit > 0);
  }

  /** One trip. Returns false when the store did not answer; everything stays as it was, to be sent again. */
  async #trip(claim: ClaimParams | null): Promise<boolean> {
    const { store, claimer, outbox, runtime, emit } = this.#parts;
    if (outbox.owesReports) await outbox.writeReports();
    const finishes = outbox.take();
    const sentAtMs = this.#unanswered?.sentAtMs ?? runtime.clock.monotonic();
    this.#unanswered = claim && { claim, sentAtMs };
    if (claim !== null) this.#isHinted = false;
    try {
      if (claim === null) {
        outbox.written(await store.finish({ claimer, finishes }));
      } else {
        const { finished, claimed } = await store.step({ finishes, claim });
        outbox.written(finished);
        this.#unanswered = null;
        this.#receive(claimed, claim, sentAtMs);
      }
      return true;
    } catch (error) {
      if (finishes.length > 0 && isOutcomesFault(error)) this.#narrow();
      else outbox.putBack();
      if (!isTransient(error) || this.#failures === 0)
        emit("error", { error, during: "claiming and finishing" });
      return false;
    }
  }

  #isDraining(): boolean {
    return this.#parts.runtime.clock.monotonic() < this.#drainUntilMs;
  }

  /**
   * Takes nothing for a lease, so that the process may become idle. A handler that takes longer must not stop everything for the sake of one job: then
   * others are claimed again for a while, and the fragile one waits for another node, or the next lull.
   */
  #drain(isWanted: boolean): void {
    const { runtime, settings } = this.#parts;
    const now = runtime.clock.monotonic();
    if (!isWanted) this.#drainUntilMs = Number.NEGATIVE_INFINITY;
    else if (now > this.#drainUntilMs + drainPauseLeases * settings.leaseMs)
      this.#drainUntilMs = now + settings.leaseMs;
  }

  #narrow(): void {
    const given = this.#parts.outbox.narrow();
    if (given !== null) this.#parts.onGivenUp(given);
  }

  #receive(claimed: ClaimResult, claim: ClaimParams, sentAtMs: number): void {
    const { onClaimed, slots, runtime, settings } = this.#parts;
    const [first] = claimed.jobs;
    if (first !== undefined && claimed.jobs.length === 1 && isFragile(first)) this.#exclusive = first.id;
    onClaimed(claimed.jobs, sentAtMs);
    this.#drain(claimed.fragile && slots.running() > 0);
    if (claimed.jobs.length >= claim.limit || this.#isHinted) {
      this.#askAtMs = 0;
      return;
    }
    const dueInMs =
      claimed.nextAt === null ? settings.pollMs : claimed.nextAt.getTime() - claimed.now.getTime();
    const floorMs = claimed.jobs.length === 0 ? minRepeatMs : 0;
    this.#askAtMs = runtime.clock.monotonic() + Math.min(Math.max(dueInMs, floorMs), settings.pollMs);
  }

  #idleMs(): number {
    const { settings, runtime } = this.#parts;
    const waitMs = this.#askAtMs - runtime.clock.monotonic();
    // Overdue and yet not asking means that there is no room: a job that ends will wake the loop.
    return waitMs <= 0 ? settings.pollMs : Math.min(waitMs, settings.pollMs);
  }
}
