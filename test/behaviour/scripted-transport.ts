import type { Message } from "../../src/message/message.ts";
import type { PublishResult, Route, Transport, TransportFactory } from "../../src/message/transport.ts";
import type { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { BatchingTransport, turnBatching } from "../../src/transports/batching.ts";

/** What the broker does with a message: answer so, or never. */
export type Reply = PublishResult | "never";

export interface Arrival {
  readonly message: Message;
  readonly id: string;
  readonly key: string;
  /** On the test's clock. */
  readonly at: number;
}

export const acknowledged: PublishResult = { kind: "acknowledged" };

export function refused(
  changes: { permanent?: boolean; retryAfterMs?: number; ofJob?: boolean } = {},
): PublishResult {
  return { kind: "refused", error: new Error("the broker is full"), permanent: false, ...changes };
}

export const ambiguous: PublishResult = { kind: "ambiguous", error: new Error("no answer") };

/** A broker inside the test: it keeps what arrives and answers as it is told. */
export class ScriptedTransport implements TransportFactory {
  readonly kind = "scripted";
  readonly address: string;
  readonly clock: VirtualClock;
  /** Everything that reached the broker, also what it then refused. */
  readonly arrivals: Arrival[] = [];
  /** How many messages each call had. */
  readonly batches: number[] = [];
  /** How long the broker takes. */
  delayMs = 0;
  isClosed = false;
  reply: (message: Message, arrival: number) => Reply = () => acknowledged;

  constructor(clock: VirtualClock, address = "") {
    this.clock = clock;
    this.address = address;
  }

  route(changes: Partial<Route> = {}): Route {
    return { transport: this, destination: "topic", dispatchTimeoutMs: 300_000, ...changes };
  }

  /** The ids of what arrived, in its order. */
  get ids(): string[] {
    return this.arrivals.map(({ id }) => id);
  }

  async open() {
    const transport: Transport = {
      publish: (messages, { timeoutMs }) => this.#publish(messages, timeoutMs),
      close: async () => {
        this.isClosed = true;
      },
    };
    return new BatchingTransport(transport, this.clock, turnBatching);
  }

  async #publish(messages: readonly Message[], timeoutMs: number): Promise<PublishResult[]> {
    this.batches.push(messages.length);
    const replies = messages.map((message) => {
      const id = decodeURIComponent(message.headers["escapement-id"] ?? "");
      const arrival = { message, id, key: message.headers["idempotency-key"] ?? "", at: this.clock.now() };
      this.arrivals.push(arrival);
      return this.reply(message, this.arrivals.filter((other) => other.id === id).length);
    });
    const isLate = this.delayMs > timeoutMs;
    const waitMs = replies.includes("never") ? timeoutMs : Math.min(this.delayMs, timeoutMs);
    if (waitMs > 0) await new Promise<void>((resolve) => this.clock.after(waitMs, resolve));
    return replies.map((reply) => (reply === "never" || isLate ? ambiguous : reply));
  }
}
