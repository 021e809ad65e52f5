import { systemClock } from "../../clock.ts";
import { EscapementError } from "../../errors.ts";
import type { ReceivedMessage } from "../../message/source.ts";
import { parseKafka } from "../../transports/kafka/address.ts";
import { baseOptions, loadClient } from "../../transports/kafka/client.ts";
import { kafka, kafkaSource } from "../../transports/kafka/index.ts";
import { type Broker, group } from "./broker.ts";

const partitions = 3;
/** What Kafka allows at the least, unless its owner says otherwise. */
const sessionTimeoutMs = 6_000;
const readWithinMs = 60_000;

async function administering<T>(
  url: string,
  ask: (admin: import("@platformatic/kafka").Admin) => Promise<T>,
): Promise<T> {
  const { Admin } = await loadClient();
  const admin = new Admin({ ...baseOptions(parseKafka(url)), retries: 20, retryDelay: 500 });
  try {
    return await ask(admin);
  } finally {
    await admin.close();
  }
}

async function copies(url: string, topic: string): Promise<ReceivedMessage[]> {
  const { Consumer, ListOffsetTimestamps } = await loadClient();
  const options = { ...baseOptions(parseKafka(url)), retries: 20, retryDelay: 500 };
  const consumer = new Consumer({ ...options, groupId: `${topic}-copies` });
  const cancel = systemClock.after(readWithinMs, () => void consumer.close(true));
  try {
    const latest = await consumer.listOffsets({ topics: [topic], timestamp: ListOffsetTimestamps.LATEST });
    const total = (latest.get(topic) ?? []).reduce((sum, offset) => sum + Number(offset), 0);
    const found: ReceivedMessage[] = [];
    if (total === 0) return found;
    const stream = await consumer.consume({ topics: [topic], mode: "earliest", autocommit: false });
    for await (const { key, value, headers } of stream) {
      const texts = Array.from(headers, ([name, text]) => [name.toString(), text.toString()] as const);
      found.push({ key: key.toString(), headers: Object.fromEntries(texts), body: value.toString() });
      if (found.length === total) return found;
    }
    throw new EscapementError("source-unavailable", `Kafka gave ${found.length} of ${total} messages`);
  } finally {
    cancel();
    await consumer.close(true).catch(() => {});
  }
}

export const kafkaBroker: Broker = {
  async prepare(url, topic) {
    await administering(url, (admin) => admin.createTopics({ topics: [topic], partitions, replicas: -1 }));
  },
  route: ({ url, topic, dispatchTimeoutMs }) =>
    kafka({ brokers: url, topic, dispatchTimeout: dispatchTimeoutMs }),
  source: (url, topic) =>
    kafkaSource({ brokers: url, topic, group: `${topic}-${group}`, sessionTimeout: sessionTimeoutMs }),
  copies,
  leader: async () => null,
  back: async () => {},
  async forget(url, topic) {
    await administering(url, (admin) => admin.deleteTopics({ topics: [topic] }));
  },
};
