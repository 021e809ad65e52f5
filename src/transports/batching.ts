import type { Clock } from "../clock.ts";
import type { Message } from "../message/message.ts";
import { refused } from "../message/publish-result.ts";
import type { PublishOptions, PublishResult, Transport } from "../message/transport.ts";

export interface Batching {
  /** How many messages one batch has at most, unless a single call has more. */
  readonly maxMessages: number;
  /** How many batches may be in flight at the same time. */
  readonly maxUnderWay: number;
}

/** For transports that can have many batches in flight: what is published in one turn goes together. */
export const turnBatching: Batching = { maxMessages: 200, maxUnderWay: Number.POSITIVE_INFINITY };

/** Calls share a batch while none of them has to give up more than a tenth of its time for another. */
const leastShareOfTime = 0.9;

interface Call {
  readonly messages: readonly Message[];
  /** On the monotonic clock. */
  readonly deadlineMs: number;
  resolve(results: PublishResult[]): void;
  reject(error: unknown): void;
}

/**
 * Batches the calls of a transport that answers a batch as a whole: those of one turn of the event loop and, where all
 * batches that may be are in flight, those that arrive meanwhile. Calls keep their order, and none is split.
 */
export class BatchingTransport implements Transport {
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #batching: Batching;
  #waiting: Call[] = [];
  #underWay = 0;
  #batches = 0;
  #isFlushing = false;

  constructor(transport: Transport, clock: Clock, batching: Batching) {
    this.#transport = transport;
    this.#clock = clock;
    this.#batching = batching;
  }

  publish(messages: readonly Message[], { timeoutMs }: PublishOptions): Promise<PublishResult[]> {
    const { promise, resolve, reject } = Promise.withResolvers<PublishResult[]>();
    const deadlineMs = this.#clock.monotonic() + timeoutMs;
    this.#waiting.push({ messages, deadlineMs, resolve, reject });
    this.#flushSoon();
    return promise;
  }

  /** How many batches were sent. */
  get batches(): number {
    return this.#batches;
  }

  async close(): Promise<void> {
    await this.#transport.close();
  }

  /** At the end of this turn of the event loop, so what is published in one turn shares a batch. */
  #flushSoon(): void {
    if (this.#isFlushing || this.#waiting.length === 0 || this.#underWay >= this.#batching.maxUnderWay)
      return;
    this.#isFlushing = true;
    this.#clock.defer(() => {
      this.#isFlushing = false;
      this.#flush();
    });
  }

  #flush(): void {
    const nowMs = this.#clock.monotonic();
    this.#waiting = this.#waiting.filter(({ messages, deadlineMs, resolve }) => {
      if (deadlineMs <= nowMs) resolve(messages.map(() => refused("not sent in time")));
      return deadlineMs > nowMs;
    });
    while (this.#waiting.length > 0 && this.#underWay < this.#batching.maxUnderWay) {
      void this.#send(this.#takeBatch(nowMs), nowMs);
    }
  }

  /** The first call that waits, and those right behind it that fit. */
  #takeBatch(nowMs: number): readonly Call[] {
    let [messages, shortestMs, longestMs] = [0, Number.POSITIVE_INFINITY, 0];
    const end = this.#waiting.findIndex((call) => {
      messages += call.messages.length;
      shortestMs = Math.min(shortestMs, call.deadlineMs - nowMs);
      longestMs = Math.max(longestMs, call.deadlineMs - nowMs);
      return messages > this.#batching.maxMessages || shortestMs < leastShareOfTime * longestMs;
    });
    return this.#waiting.splice(0, end < 0 ? this.#waiting.length : Math.max(1, end));
  }

  async #send(calls: readonly Call[], nowMs: number): Promise<void> {
    this.#underWay += 1;
    this.#batches += 1;
    try {
      const timeoutMs = Math.min(...calls.map(({ deadlineMs }) => deadlineMs)) - nowMs;
      const messages = calls.flatMap((call) => call.messages);
      const results = await this.#transport.publish(messages, { timeoutMs });
      let from = 0;
      for (const call of calls) {
        call.resolve(results.slice(from, from + call.messages.length));
        from += call.messages.length;
      }
    } catch (error) {
      for (const { reject } of calls) reject(error);
    } finally {
      this.#underWay -= 1;
      this.#flushSoon();
    }
  }
}
