import type { Clock } from "../clock.ts";
import { EscapementError } from "../errors.ts";
import type { InboxClaim, InboxStore } from "../store/inbox.ts";

/** The share of a lease after which a holder that cannot renew gives up, before another may begin. */
const safeShare = 0.8;

/** A key that this process holds: the work happens outside the inbox, and only its end is written there. */
export interface InboxHold {
  /** No copy was begun before this one. */
  readonly isFirst: boolean;
  /** Fires when the key may no longer be held: another copy may begin, so this one should end. */
  readonly lost: AbortSignal;
  /**
   * Runs the effect in the inbox's transaction and marks the key done together with it. The hold is over then.
   *
   * @throws EscapementError `stale-claim` when another copy has taken over: nothing was written where the inbox is atomic.
   */
  commit<T, Db = unknown>(effect: (db: Db) => T): Promise<Awaited<T>>;
  /**
   * Marks the key done where there is no effect to commit with it. The hold is over then.
   *
   * @throws EscapementError `stale-claim` when another copy has taken over.
   */
  finish(): Promise<void>;
  /** Nothing took effect: the next copy may begin at once, and a commit in flight is rolled back. False when it had ended before. */
  release(): Promise<boolean>;
  /** Keeps the key no longer than its lease: who begins after that learns that this one never ended. */
  abandon(): void;
}

export interface HoldParts {
  readonly store: InboxStore;
  readonly claim: InboxClaim;
  readonly leaseMs: number;
  readonly retentionMs: number;
  readonly clock: Clock;
  /** When the key was asked for; its lease began no earlier. */
  readonly askedAtMs: number;
}

/** Renews the key until it is committed or released. */
export class Hold implements InboxHold {
  readonly #parts: HoldParts;
  readonly #lost = new AbortController();
  #cancelBeat = (): void => {};
  #cancelEnd = (): void => {};
  #isOver = false;

  constructor(parts: HoldParts) {
    this.#parts = parts;
    this.#endAfter(parts.askedAtMs);
    this.#beat();
  }

  get isFirst(): boolean {
    return this.#parts.claim.token === 1;
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  async commit<T, Db = unknown>(effect: (db: Db) => T): Promise<Awaited<T>> {
    const { store, claim, retentionMs } = this.#parts;
    const run = effect as (tx: unknown) => Awaited<T> | Promise<Awaited<T>>;
    const committed = await store.commit<Awaited<T>>({ ...claim, retentionMs, run });
    this.abandon();
    if (committed.outcome === "committed") return committed.value;
    throw this.#stale();
  }

  async finish(): Promise<void> {
    const { store, claim, retentionMs } = this.#parts;
    const isHeld = await store.finish({ ...claim, retentionMs });
    this.abandon();
    if (!isHeld) throw this.#stale();
  }

  #stale(): EscapementError {
    this.#lost.abort();
    return new EscapementError(
      "stale-claim",
      `the message ${JSON.stringify(this.#parts.claim.key)} was released, or another copy has taken over: everything was rolled back`,
    );
  }

  abandon(): void {
    this.#isOver = true;
    this.#cancelBeat();
    this.#cancelEnd();
  }

  async release(): Promise<boolean> {
    this.abandon();
    const { store, claim } = this.#parts;
    // If this fails, the lease runs out.
    return store.release(claim).catch(() => true);
  }

  #beat(): void {
    const { clock, store, claim, leaseMs } = this.#parts;
    this.#cancelBeat = clock.after(leaseMs / 3, () => {
      this.#beat();
      const askedAtMs = clock.monotonic();
      // A renewal that fails is tried again by the next; the token guards the commit in any case.
      store.extend({ ...claim, leaseMs }).then(
        (isHeld) => {
          // A renewal that was in flight when the hold ended answers that it has ended.
          if (this.#isOver) return;
          if (isHeld) this.#endAfter(askedAtMs);
          else this.#lose();
        },
        () => {},
      );
    });
  }

  /** It is over when no later renewal is heard of in time. */
  #endAfter(renewedAtMs: number): void {
    const { clock, leaseMs } = this.#parts;
    this.#cancelEnd();
    const leftMs = renewedAtMs + leaseMs * safeShare - clock.monotonic();
    this.#cancelEnd = clock.after(Math.max(0, leftMs), () => this.#lose());
  }

  #lose(): void {
    this.abandon();
    this.#lost.abort();
  }
}
