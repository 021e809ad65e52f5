import type { Duration } from "../../duration.ts";
import type { Route, Transport, TransportContext } from "../../message/transport.ts";
import { checkDuration, checkInteger, checkKnown, checkOneOf } from "../../options.ts";
import { BatchingTransport } from "../batching.ts";
import { checkBrokers, type KafkaConnectionOptions, parseKafka } from "./address.ts";
import { loadClient } from "./client.ts";
import { checkTopic } from "./topic.ts";
import { KafkaTransport, kafkaBatching } from "./transport.ts";

const compressions = ["none", "gzip", "snappy", "lz4", "zstd"] as const;

export interface KafkaOptions extends KafkaConnectionOptions {
  /** The topic. You must create it: without it a publish is refused. */
  readonly topic: string;
  /** @default "none" */
  readonly compression?: (typeof compressions)[number];
  /** Maximum size of one batch of a partition: at most what the topic accepts (`max.message.bytes`). @default 900000 */
  readonly maxBatchBytes?: number;
  /** @default "300s" */
  readonly dispatchTimeout?: Duration;
}

/**
 * Publishes to a Kafka topic with an idempotent producer, acknowledged by all replicas in sync. Messages of one key go to one partition,
 * the same one that Java clients choose.
 *
 * @example
 * const payment = defineJob({ name: "payment", route: kafka({ topic: "payments" }) });
 */
export function kafka(options: KafkaOptions): Route {
  checkKnown(options, ["topic", "brokers", "compression", "maxBatchBytes", "dispatchTimeout"], "kafka");
  checkBrokers(options);
  const { compression = "none", maxBatchBytes = 900_000, dispatchTimeout = "300s" } = options;
  const address = () => parseKafka(options.brokers);
  const resolved = {
    compression: checkOneOf(compression, compressions, "kafka's compression"),
    maxBatchBytes: checkInteger(maxBatchBytes, 1_024, 64 * 1_048_576, "kafka's maxBatchBytes"),
  };
  return {
    destination: checkTopic(options.topic, "kafka's topic"),
    dispatchTimeoutMs: checkDuration(dispatchTimeout, "kafka's dispatchTimeout"),
    transport: {
      kind: "kafka",
      get address() {
        return JSON.stringify([address(), resolved]);
      },
      async open(context: TransportContext): Promise<Transport> {
        const client = await loadClient();
        const transport = new KafkaTransport({ ...context, ...resolved, address: address(), client });
        return new BatchingTransport(transport, context.clock, kafkaBatching);
      },
    },
  };
}
