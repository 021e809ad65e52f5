import { RenewalLoop } from "../claims/renewal-loop.ts";
import { type Clock, sleep } from "../clock.ts";
import { reconnectDelayMs } from "../runtime/transient.ts";
import type { ClaimRef, ExtendResult } from "../store/claims.ts";
import type { Store } from "../store/store.ts";

/** A claim to keep alive. */
export interface Renewal extends ClaimRef {
  /** On the monotonic clock; null without a timeout. */
  readonly timeoutAtMs: number | null;
}

export interface RenewerParts {
  readonly store: Store;
  readonly claimer: string;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly clock: Clock;
  random(): number;
  /** What is held now. */
  held(): readonly Renewal[];
  /** Whether a claim may be renewed now; a silent main loop loses that right after a while. */
  mayRenew(renewal: Renewal): boolean;
  onRenewed(claims: readonly ClaimRef[], sentAtMs: number): void;
  /**
   * Everything that was held at `sentAtMs` has been renewed by calls sent then or later, except what `onStale` named, and
   * what another transaction has locked all the time: it cannot be taken away either, and is renewed again
   * soon.
   */
  onCovered(sentAtMs: number): void;
  onStale(claims: readonly ClaimRef[]): void;
  onCancel(claims: readonly ClaimRef[]): void;
  onError(error: unknown): void;
}

/** How many leases one trip renews. */
const renewChunk = 1_000;
/** How often claims that another transaction has locked are asked for again, before the next heartbeat's turn. */
const lockedAttempts = 4;

/** Keeps the leases of claimed jobs alive. It runs in the main loop or in its own thread. */
export class Renewer {
  readonly #parts: RenewerParts;
  /** What the store called stale, until it is held no longer. */
  #stale: ReadonlySet<string> = new Set();
  readonly #loop: RenewalLoop;

  constructor(parts: RenewerParts) {
    this.#parts = parts;
    this.#loop = new RenewalLoop({ ...parts, renew: (signal) => this.#renewAll(signal) });
  }

  start(): void {
    this.#loop.start();
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
  }

  async #renewAll(signal: AbortSignal): Promise<void> {
    const { held, mayRenew, clock, onCovered } = this.#parts;
    const sentAtMs = clock.monotonic();
    const claims = held();
    this.#stale = this.#stale.size === 0 ? this.#stale : new Set(claims.map(keyOf)).intersection(this.#stale);
    const renewals = claims.filter((claim) => mayRenew(claim) && !this.#stale.has(keyOf(claim)));
    const locked: ClaimRef[] = [];
    for (let start = 0; start < renewals.length; start += renewChunk) {
      locked.push(...(await this.#renew(renewals.slice(start, start + renewChunk))));
    }
    onCovered(sentAtMs);
    await this.#renewLocked(locked, signal);
  }

  /**
   * Locks of jobs last for as long as the server works on a statement; those who hold them longer have to wait for a
   * heartbeat.
   */
  async #renewLocked(claims: readonly ClaimRef[], signal: AbortSignal): Promise<void> {
    const { clock, random, heartbeatMs } = this.#parts;
    let locked = claims;
    for (let attempt = 1; attempt <= lockedAttempts && locked.length > 0; attempt += 1) {
      await sleep(
        clock,
        Math.min(reconnectDelayMs(attempt, random()), heartbeatMs / (2 * lockedAttempts)),
        signal,
      );
      const held = new Set(this.#parts.held().map(keyOf));
      const wanted = locked.filter((claim) => held.has(keyOf(claim)));
      if (signal.aborted || wanted.length === 0) return;
      locked = await this.#renew(wanted);
    }
  }

  /** Returns those that another transaction has locked. */
  async #renew(renewals: readonly ClaimRef[]): Promise<readonly ClaimRef[]> {
    const { store, claimer, leaseMs, clock, onRenewed, onStale, onCancel } = this.#parts;
    const sentAtMs = clock.monotonic();
    const claims = renewals.map(({ id, token }) => ({ id, token }));
    const results = await store.extend({ claimer, leaseMs, claims });
    const having = (outcome: ExtendResult["outcome"]): ClaimRef[] =>
      claims.filter((_, index) => results[index]?.outcome === outcome);
    const stale = having("stale");
    const locked = having("locked");
    const cancelled = claims.filter((_, index) => results[index]?.cancelRequested === true);
    if (stale.length > 0) this.#stale = new Set([...this.#stale, ...stale.map(keyOf)]);
    onRenewed(stale.length + locked.length === 0 ? claims : having("extended"), sentAtMs);
    if (stale.length > 0) onStale(stale);
    if (cancelled.length > 0) onCancel(cancelled);
    return locked;
  }
}

function keyOf({ id, token }: ClaimRef): string {
  return `${token} ${id}`;
}
