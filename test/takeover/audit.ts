import { systemClock } from "../../src/clock.ts";
import { consoleLogger } from "../../src/log.ts";
import type { Source } from "../../src/source.ts";

/** Reads everything that reached the broker, as a consumer does, and counts how often each task came. */
export class Audit {
  /** Which arrival was the first of each task, counted from one; 0: none yet. */
  readonly #firstArrivals: Uint32Array;
  /** The first arrivals of tasks that came a second time. */
  readonly #again = new Set<number>();
  readonly #source: Source;
  readonly #stopping = new AbortController();
  #reading: Promise<void> | null = null;
  #unique = 0;
  #arrived = 0;
  #arrivedAtMs = Date.now();

  constructor(source: Source, tasks: number) {
    this.#source = source;
    this.#firstArrivals = new Uint32Array(tasks);
  }

  get unique(): number {
    return this.#unique;
  }

  get arrived(): number {
    return this.#arrived;
  }

  get duplicates(): number {
    return this.#arrived - this.#unique;
  }

  /** How many arrivals back from this one lies the first copy of the oldest task that came again. */
  tailBefore(arrival: number): number {
    const oldest = [...this.#again].reduce((least, first) => Math.min(least, first), arrival);
    return arrival - oldest;
  }

  /** How long nothing has come. */
  get quietMs(): number {
    return Date.now() - this.#arrivedAtMs;
  }

  start(): void {
    this.#reading = this.#read();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#reading;
  }

  async #read(): Promise<void> {
    const context = { clock: systemClock, log: consoleLogger, capacity: 1_000 };
    const session = await this.#source.open(context);
    const deliver: Parameters<typeof session.run>[0] = async ({ message, ack }) => {
      this.#note(Number(message.body));
      void ack().catch(() => {});
    };
    await session.run(deliver, this.#stopping.signal);
    await session.close();
  }

  #note(task: number): void {
    this.#arrived += 1;
    this.#arrivedAtMs = Date.now();
    const first = this.#firstArrivals[task] ?? 0;
    if (first > 0) this.#again.add(first);
    else {
      this.#unique += 1;
      this.#firstArrivals[task] = this.#arrived;
    }
  }
}
