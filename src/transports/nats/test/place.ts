import { randomUUID } from "node:crypto";
import { type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { PrivateServer } from "../../../../testbed/index.ts";
import { FaultProxy } from "../../../proof/proxy.ts";
import type { Arrived, FragilePlace, TransportPlace } from "../../../testing/transports/harness.ts";
import { until } from "../../../testing/transports/scene.ts";
import { parseNats } from "../address.ts";
import { connectOnce } from "../connect.ts";
import { nats } from "../route.ts";

/** A connection for the test itself; it ends when its server does, and then a new one is made. */
export class NatsAdmin implements AsyncDisposable {
  readonly #url: string;
  #connection: NatsConnection | null = null;

  constructor(url: string) {
    this.#url = url;
  }

  /** Repeats until it works: a cluster that has lost its leader needs a while to elect another. */
  async do<T>(what: (manager: JetStreamManager, connection: NatsConnection) => Promise<T>): Promise<T> {
    let answer: { readonly value: T } | undefined;
    let last: unknown;
    await until("NATS answers", async () => {
      try {
        if (this.#connection === null || this.#connection.isClosed())
          this.#connection = await connectOnce(parseNats(this.#url));
        const manager = await jetstreamManager(this.#connection, { checkAPI: false, timeout: 3_000 });
        answer = { value: await what(manager, this.#connection) };
        return true;
      } catch (error) {
        last = error;
        return false;
      }
    }).catch((error: Error) => {
      throw new Error(`${error.message}: ${last}`, { cause: last });
    });
    if (answer === undefined) throw new Error("unreachable");
    return answer.value;
  }

  async close(): Promise<void> {
    await this.#connection?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

export async function makeStream(admin: NatsAdmin, subject: string): Promise<void> {
  await admin.do(async (manager) => {
    await manager.streams.add({ name: subject, subjects: [subject], num_replicas: 3 });
  });
}

/** Streams under names that nobody else uses, with three copies each, read by a client of our own. */
export function natsPlace(url: string, through = url): TransportPlace {
  const admin = new NatsAdmin(url);
  return {
    tooLarge: JSON.stringify("x".repeat(1_100_000)),
    dedupes: true,
    async route() {
      const subject = `test-${randomUUID()}`;
      await makeStream(admin, subject);
      return nats({ subject, servers: through });
    },
    missing: () => nats({ subject: `nobody-${randomUUID()}`, servers: through }),
    arrived: (subject) =>
      admin.do(async (manager, connection) => {
        const { state } = await manager.streams.info(subject);
        const all: Arrived[] = [];
        const consumer = await jetstream(connection).consumers.get(subject);
        while (all.length < state.messages) {
          const batch = await consumer.fetch({ max_messages: 1_000, expires: 5_000 });
          for await (const message of batch) {
            const headers: Record<string, string> = {};
            for (const [name, [value = ""]] of message.headers ?? []) headers[name.toLowerCase()] = value;
            const key = decodeURIComponent(headers["escapement-key"] ?? "");
            all.push({ key, headers, body: message.string() });
            if (message.info.pending === 0) break;
          }
        }
        return all;
      }),
    close: () => admin.close(),
  };
}

/** A cluster of one's own; the proxy leads to its first node. */
export async function fragileNats(server: PrivateServer): Promise<FragilePlace> {
  const [, login = "", first = ""] = /^nats:\/\/([^@]+)@([^,]+)/.exec(server.url) ?? [];
  const way = await FaultProxy.start(`nats://${login}@${first}`);
  const place = natsPlace(server.url, way.url);
  return {
    ...place,
    way,
    stop: () => server.kill(),
    start: () => server.restart(),
    async close() {
      await place.close();
      await way.stop();
      await server.stop();
    },
  };
}
