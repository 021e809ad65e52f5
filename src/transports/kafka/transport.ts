import type { ClusterMetadata, MessageToProduce, Producer } from "@platformatic/kafka";
import type { Clock } from "../../clock.ts";
import type { Logger } from "../../log.ts";
import type { Message } from "../../message/message.ts";
import { acknowledged, ambiguous, heldBack, refused, textOf } from "../../message/publish-result.ts";
import type { PublishOptions, PublishResult, Transport } from "../../message/transport.ts";
import type { Batching } from "../batching.ts";
import { Deadline, late } from "../deadline.ts";
import type { KafkaAddress } from "./address.ts";
import { baseOptions, type KafkaClient } from "./client.ts";
import { PartitionQueue } from "./partition-queue.ts";
import { verdictOf } from "./verdict.ts";

export interface KafkaParts {
  readonly client: KafkaClient;
  readonly address: KafkaAddress;
  readonly compression: "none" | "gzip" | "snappy" | "lz4" | "zstd";
  readonly maxBatchBytes: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Requests go one after the other, so calls that arrive meanwhile share the next. */
export const kafkaBatching: Batching = { maxMessages: 10_000, maxUnderWay: 1 };

/** Publishes with one idempotent producer. Its caller waits for one publish before it begins the next. */
export class KafkaTransport implements Transport {
  readonly #parts: KafkaParts;
  readonly #where: string;
  #producer: Producer | null = null;
  #publishing: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(parts: KafkaParts) {
    this.#parts = parts;
    this.#where = parts.address.brokers.join(",");
  }

  publish(messages: readonly Message[], { timeoutMs }: PublishOptions): Promise<PublishResult[]> {
    const publishing = this.#publish(messages, new Deadline(this.#parts.clock, timeoutMs));
    this.#publishing = publishing.catch(() => {});
    return publishing;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#publishing;
    await this.#discard();
  }

  async #publish(messages: readonly Message[], deadline: Deadline): Promise<PublishResult[]> {
    const results: PublishResult[] = new Array(messages.length).fill(heldBack);
    const topics = Map.groupBy(messages.keys(), (index) => messages[index]?.destination ?? "");
    for (const [topic, indexes] of topics) await this.#toTopic(topic, messages, indexes, results, deadline);
    return results;
  }

  async #toTopic(
    topic: string,
    messages: readonly Message[],
    indexes: readonly number[],
    results: PublishResult[],
    deadline: Deadline,
  ): Promise<void> {
    const refuse = (why: string, cause?: unknown): void => {
      for (const index of indexes) results[index] = refused(`Kafka ${this.#where}: ${why}`, { cause });
    };
    if (this.#closed) return refuse("this transport was closed");
    if (deadline.isOver) return refuse("not sent in time");
    let partitions: number | typeof late;
    try {
      partitions = await deadline.within(this.#prepare(topic));
    } catch (error) {
      const isUnknown = textOf(error).includes("does not host this topic");
      return refuse(isUnknown ? `there is no topic ${topic}; create it first` : textOf(error), error);
    }
    if (partitions === late) {
      await this.#discard();
      return refuse("no connection in time");
    }
    const queues = new Map<number, PartitionQueue>();
    for (const index of indexes) {
      const record = this.#recordOf(messages[index] as Message, partitions);
      const { partition } = record;
      const queue = queues.get(partition) ?? new PartitionQueue(partition, this.#parts.maxBatchBytes);
      queue.add(index, record);
      queue.isAlone ||= messages[index]?.headers["escapement-delivery"] === "at-most-once";
      queues.set(partition, queue);
    }
    await this.#drain(topic, [...queues.values()], results, deadline);
  }

  /** Everything that comes before a send: if it fails, nothing was sent. */
  async #prepare(topic: string): Promise<number> {
    this.#producer ??= this.#newProducer();
    const metadata: ClusterMetadata = await this.#producer.metadata({ topics: [topic] });
    // A failed send loses the producer's id.
    if (this.#producer.producerId === undefined) await this.#producer.initIdempotentProducer({});
    return metadata.topics.get(topic)?.partitionsCount ?? 1;
  }

  /** Why nothing can be sent, or null. */
  async #unready(topic: string, deadline: Deadline): Promise<PublishResult | null> {
    try {
      if (!deadline.isOver && (await deadline.within(this.#prepare(topic))) !== late) return null;
      return refused(`Kafka ${this.#where}: not sent in time`);
    } catch (error) {
      return refused(`Kafka ${this.#where}: ${textOf(error)}`, { cause: error });
    }
  }

  /** Sends the front of every queue, as many as may share one request, until all queues are empty or stopped. */
  async #drain(
    topic: string,
    queues: readonly PartitionQueue[],
    results: PublishResult[],
    deadline: Deadline,
  ): Promise<void> {
    for (let open = [...queues]; open.length > 0; open = open.filter((queue) => queue.isOpen)) {
      const shared = open.filter(({ isAlone }) => !isAlone);
      const alone = open.filter(({ isAlone }) => isAlone).map((queue) => [queue]);
      for (const request of shared.length === 0 ? alone : [shared, ...alone])
        await this.#request(topic, request, results, deadline);
    }
  }

  async #request(
    topic: string,
    queues: readonly PartitionQueue[],
    results: PublishResult[],
    deadline: Deadline,
  ): Promise<void> {
    // The previous request may have failed for another partition, and the producer needs a new id.
    const trouble = await this.#unready(topic, deadline);
    if (trouble !== null) {
      for (const { index } of queues.flatMap((queue) => queue.left())) results[index] = trouble;
      for (const queue of queues) queue.stop();
      return;
    }
    const batches = queues.map((queue) => ({ queue, records: queue.front() }));
    const failure = await deadline
      .within(this.#send(batches.flatMap(({ records }) => records.map(({ record }) => record))))
      .then((end) => (end === late ? late : null))
      .catch((error: unknown) => error);
    if (failure === late) await this.#discard();
    for (const { queue, records } of batches) {
      for (const { index, result } of this.#settle(queue, records, failure, topic)) results[index] = result;
    }
  }

  #settle(
    queue: PartitionQueue,
    records: ReturnType<PartitionQueue["front"]>,
    failure: unknown,
    topic: string,
  ): { readonly index: number; readonly result: PublishResult }[] {
    const all = (result: PublishResult) => records.map(({ index }) => ({ index, result }));
    if (failure === null) {
      queue.taken();
      return all(acknowledged);
    }
    if (failure === late) {
      queue.stop();
      return all(ambiguous(`Kafka ${this.#where}: no answer in time`));
    }
    const verdict = verdictOf(failure, topic, queue.partition, this.#where);
    if (verdict.kind === "acknowledged") {
      queue.taken();
      return all(acknowledged);
    }
    if (verdict.kind === "failed") {
      queue.stop();
      return all(verdict.result);
    }
    if (records.length > 1) {
      queue.halve();
      return [];
    }
    queue.taken();
    return all(refused(verdict.text, { permanent: true }));
  }

  async #send(messages: MessageToProduce[]): Promise<void> {
    await this.#producer?.send({ messages });
  }

  #recordOf({ destination, key, dedupeId, headers, body }: Message, partitions: number) {
    const keyBytes = Buffer.from(key);
    // As Java's clients do, so other producers of the topic agree on where a key belongs.
    const partition = this.#parts.client.compatibilityPartitioner(null as never, keyBytes) % partitions;
    const all = new Map([[Buffer.from("escapement-dedupe-id"), Buffer.from(dedupeId)]]);
    for (const name of Object.keys(headers)) all.set(Buffer.from(name), Buffer.from(headers[name] ?? ""));
    return { topic: destination, key: keyBytes, value: Buffer.from(body), headers: all, partition };
  }

  #newProducer(): Producer {
    const { client, address, compression } = this.#parts;
    return new client.Producer({
      ...baseOptions(address),
      idempotent: true,
      compression,
      timeout: 20_000,
      retries: 3,
      retryDelay: 200,
    });
  }

  /** Nothing that it still holds is sent after this. */
  async #discard(): Promise<void> {
    const producer = this.#producer;
    this.#producer = null;
    await producer?.close(true).catch((error: unknown) => {
      this.#parts.log.debug({ error, where: this.#where }, "the Kafka producer did not close cleanly");
    });
  }
}
