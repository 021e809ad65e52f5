import { EscapementError } from "../errors.ts";
import type { EnqueueReceipt } from "../receipt.ts";
import type { Runtime } from "../runtime.ts";
import type { EnqueueResult, NewJob, Store } from "../store.ts";
import { withRetries } from "../transient.ts";

interface Pending {
  readonly job: NewJob;
  resolve(result: EnqueueResult): void;
  reject(error: unknown): void;
}

/** How many jobs one trip takes: enough that its cost is shared, few enough that nobody waits long behind it. */
export const enqueueChunk = 1_000;

/** Gathers the jobs enqueued in one turn of the event loop into one trip to the store. */
export class EnqueueBatcher {
  readonly #store: () => Promise<Store>;
  readonly #runtime: Runtime;
  #pending: Pending[] = [];
  #scheduled = false;
  #writing: Promise<void> = Promise.resolve();

  constructor(store: () => Promise<Store>, runtime: Runtime) {
    this.#store = store;
    this.#runtime = runtime;
  }

  add(job: NewJob): Promise<EnqueueResult> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ job, resolve, reject });
      if (this.#scheduled) return;
      this.#scheduled = true;
      this.#runtime.clock.defer(() => {
        this.#scheduled = false;
        const batch = this.#pending;
        this.#pending = [];
        // One batch after the other, so that jobs reach the store in the order in which they were enqueued.
        this.#writing = this.#writing.then(() => this.#write(batch));
      });
    });
  }

  /** Resolves when everything added so far is written or refused. */
  async settled(): Promise<void> {
    while (this.#scheduled) await new Promise<void>((resolve) => this.#runtime.clock.defer(resolve));
    await this.#writing;
  }

  async #write(batch: readonly Pending[]): Promise<void> {
    for (let start = 0; start < batch.length; start += enqueueChunk) {
      const chunk = batch.slice(start, start + enqueueChunk);
      try {
        const jobs = chunk.map((one) => one.job);
        // Again if need be: their ids were made before the first try, so a repetition is the same jobs.
        const results = await withRetries(this.#runtime, async () => (await this.#store()).enqueue({ jobs }));
        for (const [index, one] of chunk.entries()) one.resolve(results[index] as EnqueueResult);
      } catch (error) {
        for (const one of chunk) one.reject(error);
      }
    }
  }
}

/** A receipt for the caller, or the error that a refusal is. */
export function receive(result: EnqueueResult): EnqueueReceipt {
  if (result.outcome === "refused") {
    throw new EscapementError(
      "unknown-parent",
      `job ${JSON.stringify(result.id)} waits for ${JSON.stringify(result.parent)}, which no job has as its id; enqueue the parent first`,
    );
  }
  return { id: result.id, outcome: result.outcome };
}
