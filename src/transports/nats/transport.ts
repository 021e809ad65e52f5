import type { MsgHdrs, NatsConnection } from "@nats-io/transport-node";
import type { Clock } from "../../clock.ts";
import type { Logger } from "../../log.ts";
import { encodeHeader, type Message } from "../../message/message.ts";
import { refused, textOf } from "../../message/publish-result.ts";
import type { PublishOptions, PublishResult, Transport } from "../../message/transport.ts";
import { Deadline, late } from "../deadline.ts";
import type { NatsAddress } from "./address.ts";
import { connectOnce, connectTimeoutMs } from "./connect.ts";
import { Publisher, type Sent } from "./publisher.ts";

export interface NatsParts {
  readonly address: NatsAddress;
  readonly clock: Clock;
  readonly log: Logger;
  newHeaders(): MsgHdrs;
}

/** How many messages of one batch may await their acknowledgement: a server drops what it cannot queue. */
const mostInFlight = 1_024;

/** Publishes to JetStream over one connection at a time; a publish opens a new one if there is none. */
export class NatsTransport implements Transport {
  readonly #parts: NatsParts;
  readonly #where: string;
  #publisher: Promise<Publisher> | null = null;
  #closed = false;

  constructor(parts: NatsParts) {
    this.#parts = parts;
    this.#where = parts.address.servers.join(",");
  }

  async publish(messages: readonly Message[], { timeoutMs }: PublishOptions): Promise<PublishResult[]> {
    const deadline = new Deadline(this.#parts.clock, timeoutMs);
    let publisher: Publisher | typeof late;
    try {
      publisher = await deadline.within(this.#open(), connectTimeoutMs * 2);
    } catch (error) {
      return messages.map(() => refused(`NATS ${this.#where}: ${textOf(error)}`, { cause: error }));
    }
    if (publisher === late) return messages.map(() => refused(`NATS ${this.#where}: no connection in time`));
    return this.#sendAll(publisher, messages, deadline);
  }

  async close(): Promise<void> {
    this.#closed = true;
    const publisher = await this.#publisher?.catch(() => null);
    await publisher?.close();
  }

  /** One timer for the batch, not one for each message. */
  async #sendAll(
    publisher: Publisher,
    messages: readonly Message[],
    deadline: Deadline,
  ): Promise<PublishResult[]> {
    const results: PublishResult[] = [];
    const underway = new Set<Sent>();
    let next = 0;
    let isOver = false;
    const cancel = this.#parts.clock.after(deadline.leftMs, () => {
      isOver = true;
      for (const sent of underway) sent.giveUp();
    });
    // Each takes the next message when the one before is acknowledged, so they leave in order.
    const send = async (): Promise<void> => {
      for (let index = next++; index < messages.length; index = next++) {
        const message = messages[index] as Message;
        if (isOver) {
          results[index] = refused(`NATS ${this.#where}: not sent in time`);
          continue;
        }
        const sent = publisher.send(message.destination, message.body, this.#headersOf(message));
        underway.add(sent);
        results[index] = await sent.result;
        underway.delete(sent);
      }
    };
    await Promise.all(Array.from({ length: Math.min(mostInFlight, messages.length) }, send));
    cancel();
    return results;
  }

  #headersOf({ headers, dedupeId, key }: Message): MsgHdrs {
    const all = this.#parts.newHeaders();
    all.set("Nats-Msg-Id", dedupeId);
    all.set("escapement-key", encodeHeader(key));
    for (const name of Object.keys(headers)) all.set(name, headers[name] ?? "");
    return all;
  }

  #open(): Promise<Publisher> {
    if (this.#closed) return Promise.reject(new Error("this transport was closed"));
    this.#publisher ??= this.#connect();
    return this.#publisher;
  }

  async #connect(): Promise<Publisher> {
    const { address, log } = this.#parts;
    try {
      const connection: NatsConnection = await connectOnce(address);
      const publisher = new Publisher(connection, this.#where);
      void connection.closed().then((error) => {
        this.#publisher = null;
        if (error) log.debug({ error, where: this.#where }, "the connection to NATS broke");
      });
      if (this.#closed) await publisher.close();
      return publisher;
    } catch (error) {
      this.#publisher = null;
      throw error;
    }
  }
}
