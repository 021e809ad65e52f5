import type { AnyDefinition } from "../definition.ts";
import type { Outcome } from "../state.ts";
import type { ClaimedJob } from "../store.ts";

/** One decided end on its way to the store. */
export interface Settlement {
  readonly job: ClaimedJob;
  readonly outcome: Outcome;
  /** On the monotonic clock. */
  readonly decidedAtMs: number;
  /** A write of it has failed before. */
  hasFailed: boolean;
}

/** How jobs have ended that the store does not know of yet. */
export class Settlements {
  #all: Settlement[] = [];

  get count(): number {
    return this.#all.length;
  }

  add(job: ClaimedJob, outcome: Outcome, decidedAtMs: number): void {
    this.#all.push({ job, outcome, decidedAtMs, hasFailed: false });
  }

  /** Takes out all, to be written. */
  take(): Settlement[] {
    return this.#all.splice(0);
  }

  /** They could not be written. Returns the rollbacks among them that have failed for the first time. */
  putBack(sent: readonly Settlement[]): Settlement[] {
    this.#all = [...sent, ...this.#all];
    const failed = sent.filter(({ outcome, hasFailed }) => outcome.kind === "rollback" && !hasFailed);
    for (const settlement of failed) settlement.hasFailed = true;
    return failed;
  }

  /** Rollbacks that could not be written for as long as their route's dispatch timeout. */
  overdue(definitions: ReadonlyMap<string, AnyDefinition>, nowMs: number): Settlement[] {
    return this.#all.filter(({ job, hasFailed, decidedAtMs }) => {
      const timeoutMs = definitions.get(job.name)?.route?.dispatchTimeoutMs ?? Number.POSITIVE_INFINITY;
      return hasFailed && nowMs >= decidedAtMs + timeoutMs;
    });
  }

  remove(settlements: readonly Settlement[]): void {
    this.#all = this.#all.filter((settlement) => !settlements.includes(settlement));
  }
}
