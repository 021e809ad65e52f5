import type { Consumer, Message as KafkaMessage, MessagesStream } from "@platformatic/kafka";
import { sleep } from "../../clock.ts";
import { decodeMessage } from "../../message/decoding.ts";
import type { Delivered, SourceContext, SourceSession } from "../../message/source.ts";
import { Reconnecting } from "../reconnecting.ts";
import type { KafkaAddress } from "./address.ts";
import { baseOptions, type KafkaClient } from "./client.ts";
import { PartitionOffsets } from "./offsets.ts";

export interface KafkaSessionParts extends SourceContext {
  readonly client: KafkaClient;
  readonly address: KafkaAddress;
  readonly topic: string;
  readonly group: string;
  readonly sessionTimeoutMs: number;
}

type Deliver = (one: Delivered) => Promise<void>;

const commitEveryMs = 200;

/** One membership in the group at a time; when it ends with an error, a new one begins. */
interface Membership {
  readonly consumer: Consumer;
  readonly stream: MessagesStream<Buffer, Buffer, Buffer, Buffer>;
  readonly partitions: Map<number, PartitionOffsets>;
}

/** Reads a topic, and commits for each partition the offset before which nothing is in hand. */
export class KafkaSession implements SourceSession {
  /** The client's heartbeats keep the partitions. */
  readonly extendEveryMs = null;
  readonly #parts: KafkaSessionParts;
  readonly #reconnecting: Reconnecting;
  #membership: Membership | null = null;
  #cancelCommit: (() => void) | null = null;
  #committing: Promise<void> = Promise.resolve();

  constructor(parts: KafkaSessionParts) {
    this.#parts = parts;
    this.#reconnecting = new Reconnecting(parts.clock);
  }

  async run(deliver: Deliver, signal: AbortSignal): Promise<void> {
    const { clock, log, topic } = this.#parts;
    while (!signal.aborted) {
      try {
        const membership = await this.#join();
        // A stop meanwhile has found no membership to end.
        if (signal.aborted) return await this.#leave();
        this.#reconnecting.opened();
        await this.#read(membership, deliver, signal);
      } catch (error) {
        if (signal.aborted) break;
        const { isFirst, delayMs } = this.#reconnecting.failed();
        if (isFirst) log.warn({ error, topic }, "Kafka could not be read; it is retried");
        await this.#leave();
        await sleep(clock, delayMs * 2, signal);
      }
    }
  }

  async close(): Promise<void> {
    this.#cancelCommit?.();
    await this.#committing;
    if (this.#membership !== null) await this.#commit(this.#membership);
    await this.#leave();
  }

  async #join(): Promise<Membership> {
    const { client, address, topic, group, sessionTimeoutMs, capacity } = this.#parts;
    const consumer = new client.Consumer({
      ...baseOptions(address),
      groupId: group,
      sessionTimeout: sessionTimeoutMs,
      heartbeatInterval: Math.max(100, Math.floor(sessionTimeoutMs / 10)),
      rebalanceTimeout: sessionTimeoutMs * 2,
      retries: 3,
      retryDelay: 300,
    });
    // Without a listener, a group that cannot be rejoined would crash the process; the stream reports it too.
    consumer.on("error", (error: Error) => this.#membership?.stream.destroy(error));
    try {
      const stream = await consumer.consume({
        topics: [topic],
        autocommit: false,
        mode: "committed",
        fallbackMode: "earliest",
        maxWaitTime: 500,
        highWaterMark: Math.min(capacity, 1_000),
      });
      this.#membership = { consumer, stream, partitions: new Map() };
      return this.#membership;
    } catch (error) {
      await consumer.close(true).catch(() => {});
      throw error;
    }
  }

  async #read(membership: Membership, deliver: Deliver, signal: AbortSignal): Promise<void> {
    const { stream } = membership;
    const stop = (): void => void stream.destroy();
    signal.addEventListener("abort", stop, { once: true });
    try {
      for await (const message of stream) {
        const one = this.#deliveredOf(membership, message);
        if (one === null) continue;
        await deliver(one);
        this.#reconnecting.delivered();
      }
    } catch (error) {
      // Destroyed on purpose, the stream reports that it was closed too early.
      if (!signal.aborted) throw error;
    } finally {
      signal.removeEventListener("abort", stop);
    }
    if (!signal.aborted) throw new Error("the stream of messages ended");
  }

  #deliveredOf(membership: Membership, message: KafkaMessage): Delivered | null {
    const { partition, offset, leaderEpoch } = message;
    const offsets = membership.partitions.get(partition) ?? new PartitionOffsets(partition);
    membership.partitions.set(partition, offsets);
    offsets.leaderEpoch = leaderEpoch;
    if (!offsets.take(offset)) return null;
    const settle = async (): Promise<void> => {
      offsets.settle(offset);
      this.#commitSoon();
    };
    return {
      ...decodeMessage({
        key: () => message.key?.toString() ?? "",
        headers: () => headersOf(message),
        body: () => message.value ?? Buffer.alloc(0),
      }),
      position: `topic ${this.#parts.topic}, partition ${partition}, offset ${offset}`,
      deliveries: 1,
      ack: settle,
      abandon: settle,
      extend: async () => {},
      // It was not committed, so the partition's next member begins with it.
      release: async () => {},
    };
  }

  #commitSoon(): void {
    this.#cancelCommit ??= this.#parts.clock.after(commitEveryMs, () => {
      this.#cancelCommit = null;
      this.#committing = this.#committing.then(async () => {
        if (this.#membership !== null) await this.#commit(this.#membership);
      });
    });
  }

  /** An offset that cannot be committed costs another delivery, which the inbox absorbs. */
  async #commit({ consumer, partitions }: Membership): Promise<void> {
    const { topic, log } = this.#parts;
    const due = [...partitions.values()].flatMap((offsets) => {
      const { due: offset, partition, leaderEpoch } = offsets;
      return offset === null ? [] : [{ offsets, topic, partition, offset, leaderEpoch }];
    });
    if (due.length === 0) return;
    try {
      await consumer.commit({ offsets: due.map(({ offsets: _own, ...one }) => one) });
      for (const { offsets, offset } of due) offsets.committed(offset);
    } catch (error) {
      log.warn({ error, topic }, "offsets could not be committed; handled messages may be redelivered");
    }
  }

  async #leave(): Promise<void> {
    const membership = this.#membership;
    this.#membership = null;
    await membership?.consumer.close(true).catch((error: unknown) => {
      this.#parts.log.debug({ error }, "the Kafka consumer did not close cleanly");
    });
  }
}

/** A header may have no value, which the client's types do not say. */
function headersOf({ headers }: KafkaMessage): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const [name, value] of headers as Map<Buffer | undefined, Buffer | undefined>)
    texts[name?.toString() ?? ""] = value?.toString() ?? "";
  return texts;
}
