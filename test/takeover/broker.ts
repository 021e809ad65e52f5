import type { Route } from "../../src/index.ts";
import type { Source } from "../../src/source.ts";
import { kafka, kafkaSource } from "../../src/transports/kafka/index.ts";
import { makeTopic } from "../../src/transports/kafka/test/place.ts";
import { nats, natsSource } from "../../src/transports/nats/index.ts";
import { makeStream, NatsAdmin } from "../../src/transports/nats/test/place.ts";
import { redisStreams, redisStreamsSource } from "../../src/transports/redis-streams/index.ts";
import type { KindName } from "../../testbed/servers/index.ts";

export const brokerNames = ["redis", "nats", "kafka"] as const;
export type BrokerName = (typeof brokerNames)[number];

interface Broker {
  readonly server: KindName;
  prepare(url: string, topic: string): Promise<void>;
  route(url: string, topic: string): Route;
  source(url: string, topic: string, group: string): Source;
}

/** Each broker under the same few words: where to publish, and how to read everything from the beginning. */
export const brokers: Readonly<Record<BrokerName, Broker>> = {
  redis: {
    server: "redis",
    prepare: async () => {},
    route: (url, stream) => redisStreams({ url, stream }),
    source: (url, stream, group) => redisStreamsSource({ url, stream, group }),
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
  },
  kafka: {
    server: "kafka",
    prepare: (url, topic) => makeTopic(url, topic),
    route: (url, topic) => kafka({ brokers: url, topic }),
    source: (url, topic, group) => kafkaSource({ brokers: url, topic, group }),
  },
};
