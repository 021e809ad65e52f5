import { sleep } from "../clock.ts";
import { type AnyDefinition, defineJob } from "../definition.ts";
import type { Emit } from "../events.ts";
import { slotOf } from "../id.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { NewJob } from "../store/jobs.ts";
import type { Store } from "../store/store.ts";

/** Due this long after it is enqueued; any further delay is the relay's. */
const dueInMs = 1_000;
/** One that is not published, because no relay sends canaries any more, expires. */
const expireInMs = 60_000;

/** The definition of the canary: its route ends in this process, so only store and relay are measured. */
export const canary: AnyDefinition = defineJob<null>({
  name: "escapement-canary",
  queue: "escapement-canary",
  route: {
    destination: "canary",
    dispatchTimeoutMs: 10_000,
    transport: {
      kind: "canary",
      address: "",
      open: async () => ({
        publish: async (messages) => messages.map(() => ({ kind: "acknowledged" })),
        close: async () => {},
      }),
    },
  },
});

/**
 * Sends a small job through store and relay at intervals. How late it is published shows how they are doing, even
 * without other jobs.
 */
export class Canary {
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #everyMs: number;
  readonly #emit: Emit;
  readonly #stopping = new AbortController();
  #running: Promise<void> | null = null;

  constructor(store: Store, runtime: Runtime, everyMs: number, emit: Emit) {
    this.#store = store;
    this.#runtime = runtime;
    this.#everyMs = everyMs;
    this.#emit = emit;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.#store.enqueue({ jobs: [makeCanary(this.#runtime.newId())] });
      } catch (error) {
        this.#emit("error", { error, during: "sending a canary" });
      }
      await sleep(this.#runtime.clock, this.#everyMs, signal);
    }
  }
}

function makeCanary(random: string): NewJob {
  const id = `${canary.name}:${random}`;
  return {
    id,
    name: canary.name,
    queue: canary.queue,
    delivery: canary.delivery,
    input: "null",
    priority: 0,
    tags: [],
    runAt: null,
    delayMs: dueInMs,
    expireInMs,
    attempts: 1,
    maxCrashes: 1,
    after: [],
    afterFailure: "cancel",
    unique: null,
    debounce: null,
    concurrencyKey: null,
    rateKey: null,
    retention: null,
    relayed: true,
    slot: slotOf(id),
    schedule: null,
    fireAt: null,
  };
}
