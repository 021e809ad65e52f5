import { Producer } from "@platformatic/kafka";
import type { Route } from "../../../src/index.ts";
import type { Message } from "../../../src/message/message.ts";
import { parseKafka } from "../../../src/transports/kafka/address.ts";
import { baseOptions } from "../../../src/transports/kafka/client.ts";
import { kafkaPlace } from "../../../src/transports/kafka/test/place.ts";
import { testbed } from "../../../testbed/index.ts";
import { idHeader, type OpenTarget, type RawPublisher } from "./target.ts";

/** One node of the test bed, topics of three partitions. Kafka leaves the disk to the system, in either durability. */
export const kafkaTarget: OpenTarget = async () => {
  const server = await testbed.kafka();
  if (server.skip !== false) throw new Error(server.skip);
  const place = kafkaPlace(server.url);
  return {
    name: "kafka",
    async describe() {
      return { broker: `Kafka ${server.version} (${server.source}), one node, acks=all, no sync to disk` };
    },
    async open() {
      const route: Route = await place.route();
      return {
        route,
        openRaw: async () => openRaw(server.url),
        arrived: async () =>
          (await place.arrived(route.destination)).map((one) => one.headers[idHeader] ?? ""),
        async [Symbol.asyncDispose]() {},
      };
    },
    [Symbol.asyncDispose]: () => place.close(),
  };
};

function openRaw(url: string): RawPublisher {
  const producer = new Producer({ ...baseOptions(parseKafka(url)), idempotent: true });
  return {
    async publish(messages) {
      await producer.send({ messages: messages.map(recordOf) });
    },
    [Symbol.asyncDispose]: () => producer.close(true),
  };
}

function recordOf({ destination, key, headers, body }: Message) {
  const all = new Map(
    Object.entries(headers).map(([name, value]) => [Buffer.from(name), Buffer.from(value)]),
  );
  return { topic: destination, key: Buffer.from(key), value: Buffer.from(body), headers: all };
}
