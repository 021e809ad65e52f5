import { randomUUID } from "node:crypto";
import { Producer } from "@platformatic/kafka";
import { parseKafka } from "../../src/transports/kafka/address.ts";
import { baseOptions } from "../../src/transports/kafka/client.ts";
import { kafka, kafkaSource } from "../../src/transports/kafka/index.ts";
import { makeTopic } from "../../src/transports/kafka/test/place.ts";
import { testbed } from "../../testbed/index.ts";
import type { RawMessage } from "./broken-messages.ts";
import { type OpenTarget, startConsumer } from "./target.ts";

const partitions = 2;

export const kafkaTarget: OpenTarget = {
  skip: async () => (await testbed.kafka()).skip,
  async open(handlers) {
    const { url } = await testbed.kafka();
    const [topic, dead] = [`fuzz-${randomUUID()}`, `fuzz-dead-${randomUUID()}`];
    for (const one of [topic, dead]) await makeTopic(url, one, partitions);
    const producer = new Producer(baseOptions(parseKafka(url)));
    const from = kafkaSource({ topic, group: topic, brokers: url });
    const { consumer, ...running } = await startConsumer(
      handlers,
      from,
      kafka({ topic: dead, brokers: url }),
    );
    const send = async (messages: readonly RawMessage[]): Promise<number> => {
      const records = messages.map(({ headers, key, body }, index) => ({
        topic,
        partition: index % partitions,
        ...(key === null ? {} : { key }),
        ...(body === null ? {} : { value: body }),
        headers: new Map(headers as [Buffer, Buffer][]),
      }));
      try {
        await producer.send({ messages: records as never });
        return messages.length;
      } catch {
        // One that the broker does not take takes its batch along.
        if (messages.length === 1) return 0;
        let taken = 0;
        for (const message of messages) taken += await send([message]);
        return taken;
      }
    };
    return {
      ...running,
      publish: send,
      async [Symbol.asyncDispose]() {
        await consumer.stop();
        await producer.close();
      },
    };
  },
};
