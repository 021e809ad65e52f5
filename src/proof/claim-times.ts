import { systemClock } from "../clock.ts";
import type { ClaimParams, ClaimRef } from "../store/claims.ts";
import type { Store } from "../store/store.ts";
import { override } from "../testing/override.ts";

/**
 * When the claim behind each dispatch was sent for the first time: its lease runs from then on, so that a fault between then and the
 * first line of the handler is a fault of that dispatch too.
 */
export class ClaimTimes {
  #sent = { sequence: Number.NaN, atMs: 0 };
  readonly #claimedAtMs = new Map<string, number>();

  /** The store, with an eye on its claims. */
  around(store: Store): Store {
    return override(store, {
      step: async (params) => {
        this.#note(params.claim);
        const result = await store.step(params);
        for (const job of result.claimed.jobs) this.#claimedAtMs.set(refOf(job), this.#sent.atMs);
        return result;
      },
    });
  }

  /** Forgets it: a token is dispatched once. */
  take(claim: ClaimRef): number | null {
    const atMs = this.#claimedAtMs.get(refOf(claim)) ?? null;
    this.#claimedAtMs.delete(refOf(claim));
    return atMs;
  }

  /** A claim that is sent again, since its reply was lost, is the same one. */
  #note({ sequence }: ClaimParams): void {
    if (sequence !== this.#sent.sequence) this.#sent = { sequence, atMs: systemClock.monotonic() };
  }
}

function refOf({ id, token }: ClaimRef): string {
  return `${id} ${token}`;
}
