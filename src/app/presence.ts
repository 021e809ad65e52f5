import { hostname } from "node:os";
import { type Clock, sleep } from "../clock.ts";
import type { Emit } from "../events.ts";
import type { NodeRecord, Store } from "../store.ts";

/** How soon others see that it has more or less to do than it told last. */
const changesMs = 1_000;

/** Lets others see this node: who it is and what it runs, told again at each heartbeat, taken back at the end. */
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
  #toldActive = 0;

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
      // It will be seen as gone all the same once it has been silent for a while.
      this.#emit("error", { error, during: "signing off" });
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    for (;;) {
      await sleep(this.#clock, Math.min(this.#everyMs, changesMs), signal);
      if (signal.aborted) return;
      const isDue = this.#clock.monotonic() - this.#toldAtMs >= this.#everyMs;
      if (isDue || this.#record().active !== this.#toldActive) await this.tell();
    }
  }

  /** Tells it now; at the next heartbeat it is told again. One after the other, so that the latest word is the last. */
  tell(): Promise<void> {
    this.#telling = this.#telling.then(() => this.#tell());
    return this.#telling;
  }

  async #tell(): Promise<void> {
    try {
      await this.#put();
    } catch (error) {
      this.#emit("error", { error, during: "telling that this node is alive" });
    }
  }

  async #put(): Promise<void> {
    const record = this.#record();
    this.#toldAtMs = this.#clock.monotonic();
    this.#toldActive = record.active;
    await this.#store.putNode(record);
  }
}

/** A name for this process that no other has, and that tells a person where to look. */
export function nodeId(random: string): string {
  return `${hostname()}-${process.pid}-${random.slice(-8)}`;
}
