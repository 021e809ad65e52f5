import assert from "node:assert/strict";
import type { Outcome } from "../../state.ts";
import type {
  ClaimedJob,
  ClaimName,
  ClaimParams,
  ClaimRef,
  ClaimResult,
  ExtendResult,
  FinishResult,
} from "../../store/claims.ts";
import type { Store } from "../../store/store.ts";

/** How long the suite's claims hold, unless a test says otherwise. */
export const leaseMs = 60_000;

export function named(name: string, limits: Partial<ClaimName> = {}): ClaimName {
  return { name, concurrency: null, rate: null, ...limits };
}

/** Rises over all claimers, so that two objects for one claimer never repeat each other by accident. */
let lastSequence = 0;

/** A node that claims and finishes by hand. */
export class Claimer {
  readonly id: string;
  readonly #store: Store;

  constructor(store: Store, id: string) {
    this.#store = store;
    this.id = id;
  }

  /** The parameters of its next claim. */
  next(changes: Partial<ClaimParams> = {}): ClaimParams {
    lastSequence += 1;
    return {
      claimer: this.id,
      sequence: lastSequence,
      leaseMs,
      limit: 100,
      queues: null,
      names: [named("work")],
      alone: false,
      ...changes,
    };
  }

  claim(changes: Partial<ClaimParams> = {}): Promise<ClaimResult> {
    return this.#store.claim(this.next(changes));
  }

  async take(changes: Partial<ClaimParams> = {}): Promise<readonly ClaimedJob[]> {
    const { outcome, jobs } = await this.claim(changes);
    assert.equal(outcome, "claimed");
    return jobs;
  }

  async ids(changes: Partial<ClaimParams> = {}): Promise<string[]> {
    return (await this.take(changes)).map(({ id }) => id);
  }

  /** Claims and expects exactly one job. */
  async one(changes: Partial<ClaimParams> = {}): Promise<ClaimedJob> {
    const jobs = await this.take(changes);
    const [job] = jobs;
    assert(job !== undefined && jobs.length === 1, `expected one job, got ${jobs.length}`);
    return job;
  }

  async finish({ id, token }: ClaimRef, outcome: Outcome): Promise<FinishResult> {
    const [result] = await this.#store.finish({ claimer: this.id, finishes: [{ id, token, outcome }] });
    assert(result);
    return result;
  }

  async extend({ id, token }: ClaimRef, ms = leaseMs): Promise<ExtendResult> {
    const [result] = await this.#store.extend({ claimer: this.id, leaseMs: ms, claims: [{ id, token }] });
    assert(result);
    return result;
  }
}
