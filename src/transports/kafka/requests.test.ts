import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { systemClock } from "../../clock.ts";
import { silentLogger } from "../../log.ts";
import type { Message } from "../../message/message.ts";
import type { KafkaClient } from "./client.ts";
import { type KafkaParts, KafkaTransport } from "./transport.ts";

/** A client that keeps the partitions of each request. A message goes to the partition that its key names. */
function recorder() {
  const requests: number[][] = [];
  class Producer {
    readonly producerId = 1n;
    async metadata() {
      return { topics: new Map([["t", { partitionsCount: 4 }]]) };
    }
    async send({ messages }: { messages: { partition: number }[] }) {
      requests.push([...new Set(messages.map(({ partition }) => partition))]);
    }
    async close() {}
  }
  const client = { Producer, compatibilityPartitioner: (_: never, key: Buffer) => Number(key.toString()) };
  const address: KafkaParts["address"] = { brokers: ["b:9092"], sasl: null, tls: false };
  const sizes = { compression: "none", maxBatchBytes: 1_000_000 } as const;
  const parts = { client: client as unknown as KafkaClient, address, ...sizes };
  return {
    requests,
    transport: new KafkaTransport({ ...parts, clock: systemClock, log: silentLogger }),
  };
}

function message(partition: number, delivery: string): Message {
  const headers = { "escapement-delivery": delivery };
  return { destination: "t", key: String(partition), dedupeId: "d", headers, body: "null" };
}

describe("requests to Kafka", () => {
  test("all partitions share one, but for those with an at-most-once job: what they took must not be sent again", async () => {
    const { requests, transport } = recorder();
    const messages = [
      message(0, "at-least-once"),
      message(1, "at-most-once"),
      message(1, "at-least-once"),
      message(2, "effectively-once"),
      message(3, "at-most-once"),
    ];
    const results = await transport.publish(messages, { timeoutMs: 5_000 });
    assert.deepEqual(
      results.map(({ kind }) => kind),
      messages.map(() => "acknowledged"),
    );
    assert.deepEqual(requests, [[0, 2], [1], [3]]);
    await transport.close();
  });
});
