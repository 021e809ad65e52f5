import { setTimeout as delay } from "node:timers/promises";
import { ProblemError } from "./problem.ts";

/** One event of a stream; null only says that the stream is alive. */
export type StreamEvent = {
  readonly event: string;
  /** What a client sends back as Last-Event-ID when it comes again. */
  readonly id: string;
  readonly data: unknown;
} | null;

/** How often the store is asked on behalf of all streams with the same question. */
const pollMs = 1_000;
const heartbeatMs = 15_000;
/** Clients log in again after this, so a revoked token does not listen forever. */
const longestStreamMs = 15 * 60_000;

interface Answer {
  readonly at: number;
  readonly value: Promise<unknown>;
}

/** The event streams of this process: bounded in number and in time, and polling together. */
export class Streams {
  readonly #most: number;
  readonly #stopping = new AbortController();
  readonly #answers = new Map<string, Answer>();
  #open = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Ends all of them. */
  stop(): void {
    this.#stopping.abort();
  }

  /** Asks the store, or takes the answer that another stream got within the same second. */
  ask<T>(key: string, question: () => Promise<T>): Promise<T> {
    const now = performance.now();
    for (const [old, { at }] of this.#answers) if (now - at >= pollMs * 0.9) this.#answers.delete(old);
    const known = this.#answers.get(key);
    if (known !== undefined) return known.value as Promise<T>;
    const value = question();
    this.#answers.set(key, { at: now, value });
    // Its callers handle a failure.
    value.catch(() => {});
    return value;
  }

  /**
   * A stream of what a question finds, asked again and again until the client has disconnected.
   *
   * @param look returns the events since the last call, or `"end"` after the last one.
   */
  open(
    signal: AbortSignal,
    look: () => Promise<readonly NonNullable<StreamEvent>[] | "end">,
  ): AsyncGenerator<StreamEvent, void> {
    if (this.#open >= this.#most) {
      throw new ProblemError("too-many-streams", `${this.#most} streams are open, which is the limit`, {
        "Retry-After": "10",
      });
    }
    return this.#run(AbortSignal.any([signal, this.#stopping.signal]), look);
  }

  async *#run(
    signal: AbortSignal,
    look: () => Promise<readonly NonNullable<StreamEvent>[] | "end">,
  ): AsyncGenerator<StreamEvent, void> {
    // Here and not before: a stream without a reader is never closed.
    this.#open += 1;
    const startedAt = performance.now();
    let saidAt = startedAt;
    try {
      // At once, so headers are sent and proxies know that it has begun.
      yield null;
      while (!signal.aborted && performance.now() - startedAt < longestStreamMs) {
        const events = await look();
        if (events === "end") return;
        yield* events;
        if (events.length > 0) saidAt = performance.now();
        if (performance.now() - saidAt >= heartbeatMs) {
          yield null;
          saidAt = performance.now();
        }
        await delay(pollMs, undefined, { signal }).catch(() => {});
      }
    } finally {
      this.#open -= 1;
    }
  }
}
