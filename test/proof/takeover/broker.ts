import { jetstream } from "@nats-io/jetstream";
import { systemClock } from "../../../src/clock.ts";
import type { Route } from "../../../src/index.ts";
import { consoleLogger } from "../../../src/log.ts";
import type { Source } from "../../../src/message/source.ts";
import { kafka, kafkaSource } from "../../../src/transports/kafka/index.ts";
import { makeTopic } from "../../../src/transports/kafka/test/place.ts";
import { parseNats } from "../../../src/transports/nats/address.ts";
import { connectOnce } from "../../../src/transports/nats/connect.ts";
import { nats, natsSource } from "../../../src/transports/nats/index.ts";
import { makeStream, NatsAdmin } from "../../../src/transports/nats/test/place.ts";
import { redisStreams, redisStreamsSource } from "../../../src/transports/redis-streams/index.ts";
import type { KindName } from "../../../testbed/servers/index.ts";

export const brokerNames = ["redis", "nats", "kafka"] as const;
export type BrokerName = (typeof brokerNames)[number];

/** Gives every message that comes, from the first one on, until it is told to stop. */
export type Read = (note: (body: string) => void, signal: AbortSignal) => Promise<void>;

interface Broker {
  readonly server: KindName;
  prepare(url: string, topic: string): Promise<void>;
  route(url: string, topic: string): Route;
  source(url: string, topic: string, group: string): Source;
  /** For the audit. */
  read(url: string, topic: string): Read;
}

/** As a consumer reads. */
function readFrom(source: Source): Read {
  return async (note, signal) => {
    const session = await source.open({ clock: systemClock, log: consoleLogger, capacity: 1_000 });
    const deliver: Parameters<typeof session.run>[0] = async ({ message, ack }) => {
      note(message.body);
      void ack().catch(() => {});
    };
    await session.run(deliver, signal);
    await session.close();
  };
}

/** Without acknowledgements: each of them is agreed upon by the cluster, which then has no time left for what is published. */
function readNats(url: string, stream: string): Read {
  return async (note, signal) => {
    const connection = await connectOnce(parseNats(url));
    const consumer = await jetstream(connection).consumers.get(stream);
    const messages = await consumer.consume({ max_messages: 1_000 });
    signal.addEventListener("abort", () => messages.stop(), { once: true });
    for await (const message of messages) note(message.string());
    await connection.close();
  };
}

/** Each broker under the same few words: where to publish, and how to read everything from the beginning. */
export const brokers: Readonly<Record<BrokerName, Broker>> = {
  redis: {
    server: "redis",
    prepare: async () => {},
    route: (url, stream) => redisStreams({ url, stream }),
    source: (url, stream, group) => redisStreamsSource({ url, stream, group }),
    read: (url, stream) => readFrom(redisStreamsSource({ url, stream, group: "audit" })),
  },
  nats: {
    server: "nats",
    async prepare(url, topic) {
      const admin = new NatsAdmin(url);
      await makeStream(admin, topic);
      await admin.close();
    },
    route: (servers, subject) => nats({ servers, subject }),
    source: (servers, stream, consumer) => natsSource({ servers, stream, consumer }),
    read: readNats,
  },
  kafka: {
    server: "kafka",
    prepare: (url, topic) => makeTopic(url, topic),
    route: (url, topic) => kafka({ brokers: url, topic }),
    source: (url, topic, group) => kafkaSource({ brokers: url, topic, group }),
    read: (url, topic) => readFrom(kafkaSource({ brokers: url, topic, group: "audit" })),
  },
};
