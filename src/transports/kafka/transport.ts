import type { ClusterMetadata, MessageToProduce, Producer } from "@platformatic/kafka";
import type { Clock } from "../../clock.ts";
import { Deadline, late } from "../../deadline.ts";
import type { Logger } from "../../log.ts";
import type { Message } from "../../message.ts";
import { acknowledged, ambiguous, heldBack, refused, textOf } from "../../publish-result.ts";
import type { PublishOptions, PublishResult, Transport } from "../../transport.ts";
import type { KafkaAddress } from "./address.ts";
import { baseOptions, type KafkaClient } from "./client.ts";
import { Lane } from "./lane.ts";
import { verdictOf } from "./verdict.ts";

export interface KafkaParts {
  readonly client: KafkaClient;
  readonly address: KafkaAddress;
  readonly compression: "none" | "gzip" | "snappy" | "lz4" | "zstd";
  readonly maxBatchBytes: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A call that waits for its turn. */
interface Call {
  readonly messages: readonly Message[];
  readonly deadline: Deadline;
  resolve(results: PublishResult[]): void;
  reject(error: unknown): void;
}

/** Calls share a request when none of them has to give up more than this part of its time. */
const sharedTime = 0.8;

/** Publishes with one idempotent producer, whose requests go one after the other: calls that came meanwhile share the next. */
export class KafkaTransport implements Transport {
  readonly #parts: KafkaParts;
  readonly #where: string;
  #producer: Producer | null = null;
  #turn: Promise<unknown> = Promise.resolve();
  readonly #waiting: Call[] = [];
  #closed = false;

  constructor(parts: KafkaParts) {
    this.#parts = parts;
    this.#where = parts.address.brokers.join(",");
  }

  publish(messages: readonly Message[], { timeoutMs }: PublishOptions): Promise<PublishResult[]> {
    const deadline = new Deadline(this.#parts.clock, timeoutMs);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ messages, deadline, resolve, reject });
      this.#turn = this.#turn.then(() => this.#next());
    });
  }

  async #next(): Promise<void> {
    const calls = this.#takeCalls();
    const [first] = calls.toSorted((a, b) => a.deadline.leftMs - b.deadline.leftMs);
    if (first === undefined) return;
    const messages = calls.flatMap((call) => call.messages);
    const results: PublishResult[] = new Array(messages.length).fill(heldBack);
    const topics = Map.groupBy(messages.keys(), (index) => messages[index]?.destination ?? "");
    try {
      for (const [topic, indexes] of topics)
        await this.#toTopic(topic, messages, indexes, results, first.deadline);
      for (const call of calls) call.resolve(results.splice(0, call.messages.length));
    } catch (error) {
      for (const call of calls) call.reject(error);
    }
  }

  /** The first call that waits, and those behind it that have about as much time as all the others: in their order. */
  #takeCalls(): readonly Call[] {
    let [least, most] = [Number.POSITIVE_INFINITY, 0];
    const end = this.#waiting.findIndex(({ deadline: { leftMs } }) => {
      least = Math.min(least, leftMs);
      most = Math.max(most, leftMs);
      return least < sharedTime * most;
    });
    return this.#waiting.splice(0, end < 0 ? this.#waiting.length : Math.max(1, end));
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#turn;
    await this.#discard();
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
      return refuse(isUnknown ? `there is no topic ${topic}; make it first` : textOf(error), error);
    }
    if (partitions === late) {
      await this.#discard();
      return refuse("no connection in time");
    }
    const lanes = new Map<number, Lane>();
    for (const index of indexes) {
      const record = this.#recordOf(messages[index] as Message, partitions);
      const lane = lanes.get(record.partition) ?? new Lane(record.partition, this.#parts.maxBatchBytes);
      lane.add(index, record);
      lane.isAlone ||= messages[index]?.headers["escapement-delivery"] === "at-most-once";
      lanes.set(record.partition, lane);
    }
    await this.#drain(topic, [...lanes.values()], results, deadline);
  }

  /** Everything that comes before a send: if it fails, nothing was sent. */
  async #prepare(topic: string): Promise<number> {
    this.#producer ??= this.#newProducer();
    const metadata: ClusterMetadata = await this.#producer.metadata({ topics: [topic] });
    // A failed send takes the number of the producer along.
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

  /** Sends the front of every lane, all that can in one request, until all lanes are empty or stuck. */
  async #drain(
    topic: string,
    lanes: readonly Lane[],
    results: PublishResult[],
    deadline: Deadline,
  ): Promise<void> {
    for (let open = [...lanes]; open.length > 0; open = open.filter((lane) => lane.isOpen)) {
      const shared = open.filter(({ isAlone }) => !isAlone);
      const alone = open.filter(({ isAlone }) => isAlone).map((lane) => [lane]);
      for (const request of shared.length === 0 ? alone : [shared, ...alone])
        await this.#request(topic, request, results, deadline);
    }
  }

  async #request(
    topic: string,
    lanes: readonly Lane[],
    results: PublishResult[],
    deadline: Deadline,
  ): Promise<void> {
    // The request before may have failed for another partition, and the producer needs a new number.
    const trouble = await this.#unready(topic, deadline);
    if (trouble !== null) {
      for (const { index } of lanes.flatMap((lane) => lane.left())) results[index] = trouble;
      for (const lane of lanes) lane.stop();
      return;
    }
    const batches = lanes.map((lane) => ({ lane, records: lane.front() }));
    const failure = await deadline
      .within(this.#send(batches.flatMap(({ records }) => records.map(({ record }) => record))))
      .then((end) => (end === late ? late : null))
      .catch((error: unknown) => error);
    if (failure === late) await this.#discard();
    for (const { lane, records } of batches) {
      for (const { index, result } of this.#settle(lane, records, failure, topic)) results[index] = result;
    }
  }

  #settle(
    lane: Lane,
    records: ReturnType<Lane["front"]>,
    failure: unknown,
    topic: string,
  ): { readonly index: number; readonly result: PublishResult }[] {
    const all = (result: PublishResult) => records.map(({ index }) => ({ index, result }));
    if (failure === null) {
      lane.taken();
      return all(acknowledged);
    }
    if (failure === late) {
      lane.stop();
      return all(ambiguous(`Kafka ${this.#where}: no answer in time`));
    }
    const verdict = verdictOf(failure, topic, lane.partition, this.#where);
    if (verdict.kind === "acknowledged") {
      lane.taken();
      return all(acknowledged);
    }
    if (verdict.kind === "failed") {
      lane.stop();
      return all(verdict.result);
    }
    if (records.length > 1) {
      lane.halve();
      return [];
    }
    lane.taken();
    return all(refused(verdict.text, { permanent: true }));
  }

  async #send(messages: MessageToProduce[]): Promise<void> {
    await this.#producer?.send({ messages });
  }

  #recordOf({ destination, key, dedupeId, headers, body }: Message, partitions: number) {
    const keyBytes = Buffer.from(key);
    // As Java's clients do it, so that whoever else writes to the topic agrees on where a key belongs.
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
      this.#parts.log.debug({ error, where: this.#where }, "the Kafka producer did not close in order");
    });
  }
}
