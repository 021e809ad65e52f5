import { randomUUID } from "node:crypto";
import { Admin, Consumer, ListOffsetTimestamps } from "@platformatic/kafka";
import type { PrivateServer } from "../../../../testbed/index.ts";
import { proxyKafka } from "../../../../testbed/servers/kafka.ts";
import type { Arrived, FragilePlace, TransportPlace } from "../../../testing/transports/harness.ts";
import { parseKafka } from "../address.ts";
import { baseOptions } from "../client.ts";
import { kafka } from "../route.ts";

const partitions = 3;

export async function makeTopic(url: string, topic: string, count = partitions): Promise<void> {
  const admin = new Admin({ ...baseOptions(parseKafka(url)), retries: 10, retryDelay: 500 });
  try {
    await admin.createTopics({ topics: [topic], partitions: count, replicas: 1 });
  } finally {
    await admin.close();
  }
}

/** All that a topic holds, partition by partition. */
async function readTopic(url: string, topic: string): Promise<Arrived[]> {
  const groupId = `reader-${randomUUID()}`;
  const consumer = new Consumer({ ...baseOptions(parseKafka(url)), groupId, retries: 10, retryDelay: 500 });
  try {
    const latest = await consumer.listOffsets({ topics: [topic], timestamp: ListOffsetTimestamps.LATEST });
    const total = (latest.get(topic) ?? []).reduce((sum, offset) => sum + Number(offset), 0);
    const all: Arrived[] = [];
    if (total === 0) return all;
    const stream = await consumer.consume({ topics: [topic], mode: "earliest", autocommit: false });
    for await (const { key, value, headers } of stream) {
      const texts = Array.from(headers, ([name, text]) => [name.toString(), text.toString()] as const);
      all.push({ key: key.toString(), headers: Object.fromEntries(texts), body: value.toString() });
      if (all.length === total) break;
    }
    return all;
  } finally {
    await consumer.close(true);
  }
}

/** Topics under names that nobody else uses, read by a client of our own. */
export function kafkaPlace(url: string, through = url): TransportPlace {
  return {
    tooLarge: JSON.stringify("x".repeat(1_100_000)),
    dedupes: false,
    async route() {
      const topic = `test-${randomUUID()}`;
      await makeTopic(url, topic);
      return kafka({ topic, brokers: through });
    },
    missing: () => kafka({ topic: `nobody-${randomUUID()}`, brokers: through }),
    arrived: (topic) => readTopic(url, topic),
    close: async () => {},
  };
}

export async function fragileKafka(server: PrivateServer): Promise<FragilePlace> {
  const way = await proxyKafka(server.url);
  const place = kafkaPlace(server.url, way.url.replace(/\/$/, ""));
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
