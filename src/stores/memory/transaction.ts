import { EscapementError } from "../../errors.ts";
import type { ClaimRef, EnqueueResult, NewJob, TransactParams, TransactResult } from "../../store.ts";
import { decide, enqueue } from "./enqueue.ts";
import { finish, held } from "./finish.ts";
import type { Space } from "./space.ts";

/**
 * What `transact` hands to its caller: a map of keys to values whose writes are seen by others when, and only
 * when, the job's completion is written with them.
 */
export class MemoryTransaction {
  readonly #space: Space;
  readonly #written = new Map<string, unknown>();
  readonly #jobs = new Map<string, NewJob>();
  #open = true;

  constructor(space: Space) {
    this.#space = space;
  }

  get(key: string): unknown {
    return this.#written.has(key) ? this.#written.get(key) : this.#space.effects.get(key);
  }

  set(key: string, value: unknown): void {
    this.assertOpen();
    this.#written.set(key, value);
  }

  /** Keeps the jobs back until the commit; the answer is what it would come to if that were now. */
  stage(jobs: readonly NewJob[], now: number): EnqueueResult[] {
    this.assertOpen();
    const staged = new Set(this.#jobs.keys());
    return jobs.map((job) => {
      const result = decide(this.#space, job, now, staged);
      if (result.outcome !== "existing" && result.outcome !== "refused") {
        staged.add(job.id);
        this.#jobs.set(job.id, job);
      }
      return result;
    });
  }

  commit(now: number): void {
    for (const [key, value] of this.#written) this.#space.effects.set(key, value);
    enqueue(this.#space, [...this.#jobs.values()], now);
  }

  close(): void {
    this.#open = false;
  }

  belongsTo(space: Space): boolean {
    return this.#space === space;
  }

  assertOpen(): void {
    if (this.#open) return;
    throw new EscapementError(
      "transaction-used",
      "the transaction is over; use its handle only inside the function that received it",
    );
  }
}

export async function transact<T>(
  space: Space,
  params: TransactParams<T>,
  now: () => number,
): Promise<TransactResult<T>> {
  const claim: ClaimRef = params;
  if (held(space, params.claimer, claim) === undefined) return { outcome: "stale" };
  const transaction = new MemoryTransaction(space);
  try {
    const value = await params.run(transaction, (jobs) => transaction.stage(jobs, now()));
    const outcome = params.encode(value);
    // The claim may have ended while the caller's writes were being prepared; nothing is awaited from here on.
    if (held(space, params.claimer, claim) === undefined) return { outcome: "stale" };
    transaction.commit(now());
    finish(
      space,
      { claimer: params.claimer, finishes: [{ id: params.id, token: params.token, outcome }] },
      now(),
    );
    return { outcome: "committed", value };
  } finally {
    transaction.close();
  }
}

/** The handle that was passed as `tx`, if it is one of this namespace's that is still open. */
export function transactionOf(space: Space, tx: unknown): MemoryTransaction {
  if (!(tx instanceof MemoryTransaction) || !tx.belongsTo(space)) {
    throw new EscapementError(
      "transaction-unavailable",
      "expected tx to be the handle that a handler's tx(...) received from this memory store and namespace",
    );
  }
  return tx;
}
