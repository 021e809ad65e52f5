import type { Consumer, ConsumerMessages, JsMsg } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { sleep } from "../../clock.ts";
import { decodeMessage } from "../../message/decoding.ts";
import type { Delivered, SourceContext, SourceSession } from "../../message/source.ts";
import { Reconnecting } from "../reconnecting.ts";
import type { NatsAddress } from "./address.ts";
import { connectOnce } from "./connect.ts";

export interface NatsSessionParts extends SourceContext {
  readonly client: typeof import("@nats-io/jetstream");
  readonly address: NatsAddress;
  readonly stream: string;
  readonly consumer: string;
  readonly subject: string | null;
  readonly ackWaitMs: number;
}

type Deliver = (one: Delivered) => Promise<void>;

const mostAtOnce = 100;
const expiresMs = 5_000;
const apiTimeoutMs = 5_000;
const nanosecondsPerMs = 1_000_000;

/** Pulls messages as there is room for them, over one connection at a time. */
export class NatsSession implements SourceSession {
  readonly extendEveryMs: number;
  readonly #parts: NatsSessionParts;
  readonly #reconnecting: Reconnecting;
  #connection: NatsConnection | null = null;
  #batch: ConsumerMessages | null = null;
  #isClosed = false;

  constructor(parts: NatsSessionParts) {
    this.#parts = parts;
    this.#reconnecting = new Reconnecting(parts.clock);
    this.extendEveryMs = parts.ackWaitMs / 3;
  }

  async run(deliver: Deliver, signal: AbortSignal): Promise<void> {
    const { clock, log, stream } = this.#parts;
    while (!signal.aborted) {
      try {
        const consumer = await this.#open();
        this.#reconnecting.opened();
        while (!signal.aborted) await this.#pull(consumer, deliver, signal);
      } catch (error) {
        if (signal.aborted) break;
        const { isFirst, delayMs } = this.#reconnecting.failed();
        if (isFirst) log.warn({ error, stream }, "NATS could not be read; it is retried");
        await this.#connection?.close().catch(() => {});
        await sleep(clock, delayMs, signal);
      }
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    // The last acknowledgements may still be in flight.
    await this.#connection?.flush().catch(() => {});
    await this.#connection?.close();
  }

  async #open(): Promise<Consumer> {
    const { client, address, stream, consumer, subject, ackWaitMs, capacity, log } = this.#parts;
    const connection = await connectOnce(address);
    this.#connection = connection;
    if (this.#isClosed) await connection.close();
    void connection.closed().then(() => this.#batch?.stop());
    const manager = await client.jetstreamManager(connection, { checkAPI: false, timeout: apiTimeoutMs });
    const known = await manager.consumers.info(stream, consumer).catch((error: Error) => {
      if (/consumer not found/i.test(error.message)) return null;
      throw error;
    });
    if (known === null) {
      await manager.consumers.add(stream, {
        durable_name: consumer,
        ack_policy: client.AckPolicy.Explicit,
        ack_wait: ackWaitMs * nanosecondsPerMs,
        max_deliver: -1,
        max_ack_pending: Math.max(1_000, capacity * 10),
        ...(subject === null ? {} : { filter_subject: subject }),
      });
    }
    const ownMs = (known?.config.ack_wait ?? Number.POSITIVE_INFINITY) / nanosecondsPerMs;
    if (ownMs < ackWaitMs) {
      const text = `the consumer's own ack_wait is ${ownMs} ms; pass that to natsSource as ackWait, or messages are redelivered while they are in hand`;
      log.warn({ stream, consumer }, text);
    }
    return client.jetstream(connection, { timeout: apiTimeoutMs }).consumers.get(stream, consumer);
  }

  async #pull(consumer: Consumer, deliver: Deliver, signal: AbortSignal): Promise<void> {
    const max = Math.min(mostAtOnce, this.#parts.capacity);
    const batch: ConsumerMessages = await consumer.fetch({ max_messages: max, expires: expiresMs });
    const stop = (): void => batch.stop();
    signal.addEventListener("abort", stop, { once: true });
    this.#batch = batch;
    if (this.#connection?.isClosed()) stop();
    const rooms: Promise<void>[] = [];
    try {
      // All of them are in hand from now on, so none of them is redelivered while it waits for room.
      for await (const message of batch) {
        rooms.push(deliver(deliveredOf(message)));
        this.#reconnecting.delivered();
      }
      await Promise.all(rooms);
    } finally {
      this.#batch = null;
      signal.removeEventListener("abort", stop);
    }
    if (this.#connection?.isClosed()) throw new Error("the connection to NATS broke");
  }
}

function deliveredOf(message: JsMsg): Delivered {
  const { stream, streamSequence, deliveryCount } = message.info;
  return {
    ...decodeMessage({
      key: () => decodeKey(headersOf(message)[keyHeader] ?? ""),
      headers: () => {
        const { [keyHeader]: _key, ...headers } = headersOf(message);
        return headers;
      },
      body: () => message.data,
    }),
    position: `stream ${stream}, sequence ${streamSequence}`,
    deliveries: deliveryCount,
    async ack() {
      message.ack();
    },
    async abandon() {
      message.term("no dead letter could be written");
    },
    async extend() {
      message.working();
    },
    async release() {
      message.nak();
    },
  };
}

const keyHeader = "escapement-key";

/** The client decodes them on demand, and throws at a name that its own publishers would not send. */
function headersOf(message: JsMsg): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, [value = ""]] of message.headers ?? []) headers[name.toLowerCase()] = value;
  return headers;
}

function decodeKey(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
