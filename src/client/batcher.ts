import { EscapementError } from "../errors.ts";
import type { EnqueueReceipt } from "../receipt.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { withRetries } from "../runtime/transient.ts";
import type { EnqueueResult, NewJob } from "../store/jobs.ts";
import type { Store } from "../store/store.ts";
import { type Chunk, writeInChunks } from "./chunks.ts";

interface Pending {
  readonly job: NewJob;
  resolve(receipt: EnqueueReceipt): void;
  reject(error: unknown): void;
}

/** Collects the jobs enqueued in one turn of the event loop into one trip to the store. */
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

  /** Resolves when the store has it; rejects if that is refused. */
  add(job: NewJob): Promise<EnqueueReceipt> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ job, resolve, reject });
      if (this.#scheduled) return;
      this.#scheduled = true;
      this.#runtime.clock.defer(() => {
        this.#scheduled = false;
        const batch = this.#pending;
        this.#pending = [];
        // One batch after the other, so jobs reach the store in the order in which they were enqueued.
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
    const write = (chunk: readonly Pending[], before?: Promise<unknown>): Promise<EnqueueResult[]> => {
      const jobs = chunk.map(({ job }) => job);
      // A chunk that fails does not fail the others.
      const follows = before?.catch(() => {});
      // Repeated if need be: their ids were made before the first attempt, so a repetition adds no second job.
      return withRetries(this.#runtime, async () => (await this.#store()).enqueue({ jobs, follows }));
    };
    await writeInChunks(this.#runtime.clock, batch, write, settle);
  }
}

async function settle({ items, written }: Chunk<Pending, EnqueueResult[]>): Promise<void> {
  try {
    const results = await written;
    for (let index = 0; index < items.length; index += 1)
      answer(items[index] as Pending, results[index] as EnqueueResult);
  } catch (error) {
    for (const one of items) one.reject(error);
  }
}

function answer({ resolve, reject }: Pending, result: EnqueueResult): void {
  try {
    resolve(receive(result));
  } catch (error) {
    reject(error);
  }
}

/** A receipt for the caller, or the error that a refusal is. */
export function receive(result: EnqueueResult): EnqueueReceipt {
  if (result.outcome === "refused") {
    throw new EscapementError(
      "unknown-parent",
      `job ${JSON.stringify(result.id)} waits for ${JSON.stringify(result.parent)}, which does not exist; enqueue the parent first`,
    );
  }
  return { id: result.id, outcome: result.outcome };
}
