import { EscapementError } from "../../errors.ts";
import type { ClaimRef, TransactParams, TransactResult } from "../../store/claims.ts";
import type { EnqueueResult, NewJob } from "../../store/jobs.ts";
import type { Data } from "./data/data.ts";
import { decide, enqueue } from "./enqueue.ts";
import { finish, held } from "./finish.ts";
import { report } from "./leases.ts";
import type { Session } from "./session.ts";

/**
 * What `transact` passes to its caller: a map of keys to values whose writes become visible to others when, and only
 * when, the job's completion is written with them.
 */
export class MemoryTransaction {
  readonly #data: Data;
  readonly #written = new Map<string, unknown>();
  readonly #jobs = new Map<string, NewJob>();
  #open = true;

  constructor(data: Data) {
    this.#data = data;
  }

  get(key: string): unknown {
    return this.#written.has(key) ? this.#written.get(key) : this.#data.effects.get(key);
  }

  set(key: string, value: unknown): void {
    this.assertOpen();
    this.#written.set(key, value);
  }

  /** Holds the jobs back until the commit; the answer is what the result would be now. */
  stage(jobs: readonly NewJob[], now: number): EnqueueResult[] {
    this.assertOpen();
    const staged = new Set(this.#jobs.keys());
    return jobs.map((job) => {
      const result = decide(this.#data, job, now, staged);
      if (result.outcome !== "existing" && result.outcome !== "refused") {
        staged.add(job.id);
        this.#jobs.set(job.id, job);
      }
      return result;
    });
  }

  commit(now: number): void {
    for (const [key, value] of this.#written) this.#data.effects.set(key, value);
    enqueue(this.#data, [...this.#jobs.values()], now);
  }

  close(): void {
    this.#open = false;
  }

  belongsTo(data: Data): boolean {
    return this.#data === data;
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
  data: Data,
  params: TransactParams<T>,
  session: () => Session,
): Promise<TransactResult<T>> {
  const claim: ClaimRef = params;
  if (held(data, params.claimer, claim) === undefined) return { outcome: "stale" };
  const transaction = new MemoryTransaction(data);
  try {
    const value = await params.run(transaction, (jobs) => transaction.stage(jobs, session().now));
    const outcome = params.encode(value);
    const reported = params.report?.() ?? null;
    // The claim may have ended while the caller's writes were being prepared; nothing is awaited from here on.
    if (held(data, params.claimer, claim) === undefined) return { outcome: "stale" };
    transaction.commit(session().now);
    const { claimer, id, token } = params;
    if (reported !== null) report(session(), { claimer, reports: [{ id, token, ...reported }] });
    finish(session(), { claimer, finishes: [{ id, token, outcome }] });
    return { outcome: "committed", value };
  } finally {
    transaction.close();
  }
}

/** The handle that was passed as `tx`, if it is one of this namespace's that is still open. */
export function transactionOf(data: Data, tx: unknown): MemoryTransaction {
  if (!(tx instanceof MemoryTransaction) || !tx.belongsTo(data)) {
    throw new EscapementError(
      "transaction-unavailable",
      "expected tx to be the handle that a handler's tx(...) received from this memory store and namespace",
    );
  }
  return tx;
}
