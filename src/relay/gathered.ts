import type { Clock } from "../clock.ts";
import type { Message } from "../message.ts";
import { refused } from "../publish-result.ts";
import type { PublishOptions, PublishResult, Transport } from "../transport.ts";

/** What one call carries at the most, unless a single publish has more. */
const mostMessages = 200;
/** By how much of its time a publish may be cut short to go along with another. */
const mostShare = 1 / 10;

interface Waiting {
  readonly messages: readonly Message[];
  /** On the monotonic clock: by then it is over. */
  readonly untilMs: number;
  resolve(results: PublishResult[]): void;
  reject(error: unknown): void;
}

/** A transport that is given as one batch what several partitions publish in one turn of the event loop. */
export class GatheredTransport implements Transport {
  readonly #transport: Transport;
  readonly #clock: Clock;
  #waiting: Waiting[] = [];

  constructor(transport: Transport, clock: Clock) {
    this.#transport = transport;
    this.#clock = clock;
  }

  publish(messages: readonly Message[], { timeoutMs }: PublishOptions): Promise<PublishResult[]> {
    const { promise, resolve, reject } = Promise.withResolvers<PublishResult[]>();
    if (this.#waiting.length === 0) this.#clock.defer(() => this.#flush());
    const untilMs = this.#clock.monotonic() + timeoutMs;
    this.#waiting.push({ messages, untilMs, resolve, reject });
    return promise;
  }

  async close(): Promise<void> {
    await this.#transport.close();
  }

  #flush(): void {
    const nowMs = this.#clock.monotonic();
    const all = this.#waiting.filter(({ messages, untilMs, resolve }) => {
      if (untilMs <= nowMs) resolve(messages.map(() => refused("not sent in time")));
      return untilMs > nowMs;
    });
    this.#waiting = [];
    let part: Waiting[] = [];
    let size = 0;
    for (const one of all) {
      const [first] = part;
      if (first !== undefined && (size + one.messages.length > mostMessages || isApart(first, one, nowMs))) {
        void this.#send(part, nowMs);
        [part, size] = [[], 0];
      }
      part.push(one);
      size += one.messages.length;
    }
    if (part.length > 0) void this.#send(part, nowMs);
  }

  async #send(part: readonly Waiting[], nowMs: number): Promise<void> {
    try {
      const timeoutMs = Math.min(...part.map(({ untilMs }) => untilMs)) - nowMs;
      const results = await this.#transport.publish(
        part.flatMap(({ messages }) => messages),
        { timeoutMs },
      );
      let from = 0;
      for (const { messages, resolve } of part) {
        resolve(results.slice(from, from + messages.length));
        from += messages.length;
      }
    } catch (error) {
      for (const { reject } of part) reject(error);
    }
  }
}

/** Whether one of them would be given up long before its time for the sake of the other. */
function isApart(one: Waiting, other: Waiting, nowMs: number): boolean {
  const longestMs = Math.max(one.untilMs, other.untilMs) - nowMs;
  return Math.abs(one.untilMs - other.untilMs) > mostShare * longestMs;
}
