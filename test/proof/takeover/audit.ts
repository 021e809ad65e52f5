import type { Read } from "./broker.ts";

/** Reads everything that reached the broker, and counts how often each task came. */
export class Audit {
  /** Which arrival was the first of each task, counted from one; 0: none yet. */
  readonly #firstArrivals: Uint32Array;
  /** The first arrivals of tasks that came a second time. */
  readonly #again = new Set<number>();
  readonly #read: Read;
  readonly #stopping = new AbortController();
  #reading: Promise<void> | null = null;
  #unique = 0;
  #arrived = 0;
  #arrivedAtMs = Date.now();

  constructor(read: Read, tasks: number) {
    this.#read = read;
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
    this.#reading = this.#read((body) => this.#note(Number(body)), this.#stopping.signal);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#reading;
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
