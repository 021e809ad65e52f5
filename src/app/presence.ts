import { hostname } from "node:os";
import { type Clock, sleep } from "../clock.ts";
import type { Emit } from "../events.ts";
import type { NodeRecord } from "../store/nodes.ts";
import type { Store } from "../store/store.ts";

/** How soon others see that it does something other than it last reported. */
const changesMs = 1_000;

/** Shows this node to others: who it is and what it runs, written at each heartbeat and removed at the end. */
export class Presence {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #everyMs: number;
  readonly #record: () => NodeRecord;
  readonly #emit: Emit;
  readonly #stopping = new AbortController();
  #running: Promise<void> | null = null;
  #telling: Promise<void> = Promise.resolve();
  #toldAtMs = 0;
  #told = "";

  constructor(store: Store, clock: Clock, everyMs: number, record: () => NodeRecord, emit: Emit) {
    this.#store = store;
    this.#clock = clock;
    this.#everyMs = everyMs;
    this.#record = record;
    this.#emit = emit;
  }

  async start(): Promise<void> {
    await this.#put();
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    try {
      await this.#store.removeNode({ id: this.#record().id });
    } catch (error) {
      // It will be seen as gone anyway once it has been silent for a while.
      this.#emit("error", { error, during: "signing off" });
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    for (;;) {
      await sleep(this.#clock, Math.min(this.#everyMs, changesMs), signal);
      if (signal.aborted) return;
      const isDue = this.#clock.monotonic() - this.#toldAtMs >= this.#everyMs;
      if (isDue || newsIn(this.#record()) !== this.#told) await this.tell();
    }
  }

  /** Writes the record now, and again at the next heartbeat. One write after the other, so the latest one is the last. */
  tell(): Promise<void> {
    this.#telling = this.#telling.then(() => this.#tell());
    return this.#telling;
  }

  async #tell(): Promise<void> {
    try {
      await this.#put();
    } catch (error) {
      this.#emit("error", { error, during: "reporting this node as alive" });
    }
  }

  async #put(): Promise<void> {
    const record = this.#record();
    this.#toldAtMs = this.#clock.monotonic();
    this.#told = newsIn(record);
    await this.#store.putNode(record);
  }
}

/** What others should see soon when it changes: how much it runs, what it has run for long, which destinations are in trouble, and whether its relay lags. */
function newsIn({ active, running = [], destinations = [], lags = [] }: NodeRecord): string {
  const troubled = destinations.map(({ failures, error }) => (failures === 0 ? null : error));
  return JSON.stringify([active, running.map(({ id }) => id), troubled, lags.length > 0]);
}

/** A unique name for this process that shows a person where to look. */
export function nodeId(random: string): string {
  return `${hostname()}-${process.pid}-${random.slice(-8)}`;
}
