import type { ClaimedJob } from "../../store/claims.ts";
import type { StoredJob } from "../../store/jobs.ts";
import type { PartitionRef } from "../../store/partitions.ts";
import type { Store } from "../../store/store.ts";
import { Chance } from "../chance.ts";
import { pages } from "./operation.ts";

export const queueNames = ["q1", "q2"] as const;
export const jobNames = ["work", "other"] as const;
export const claimers = ["n1", "n2", "n3"] as const;
export const owners = ["o1", "o2"] as const;
export const scheduleKeys = ["s1", "s2"] as const;
const ids = Array.from({ length: 14 }, (_, n) => `j${n}`);

interface Claim {
  readonly id: string;
  readonly token: number;
  readonly claimer: string;
}

/** What the next operation may rest on: chance, and what the first store has answered so far. */
export class World {
  readonly chance: Chance;
  readonly first: Store;
  /** The latest claims, good and stale. */
  readonly claims: Claim[] = [];
  readonly grants: (PartitionRef & { readonly owner: string })[] = [];
  readonly sequences = new Map<string, number>();
  /** How far time has come, in milliseconds since the start. */
  nowMs = 0;

  constructor(seed: number, first: Store) {
    this.chance = new Chance(seed, "operations");
    this.first = first;
  }

  id(): string {
    return this.chance.pickFrom(ids) ?? "j0";
  }

  remember(claimer: string, jobs: readonly ClaimedJob[]): void {
    this.claims.push(...jobs.map(({ id, token }) => ({ id, token, claimer })));
    this.claims.splice(0, this.claims.length - 12);
  }

  /** Mostly a claim that was given; sometimes one with a wrong claimer, token or id. */
  claim(): Claim {
    const claim = this.chance.pickFrom(this.claims) ?? { id: this.id(), token: 1, claimer: "n1" };
    if (this.chance.oneIn(12)) return { ...claim, token: claim.token + this.chance.pick([-1, 1]) };
    if (this.chance.oneIn(12)) return { ...claim, claimer: this.chance.pick(claimers) };
    return claim;
  }

  /** Every job that the first store has, the oldest first. */
  jobs(): Promise<StoredJob[]> {
    return pages(async (cursor) => {
      const page = await this.first.list({ filter: {}, limit: 100, order: "oldest", cursor });
      return { items: page.jobs, cursor: page.cursor };
    });
  }
}
