import type { Duration } from "../../duration.ts";
import type { Source, SourceContext, SourceSession } from "../../message/source.ts";
import { checkName } from "../../names.ts";
import { checkDuration, checkKnown } from "../../options.ts";
import { checkBrokers, type KafkaConnectionOptions, parseKafka, sharesBroker } from "./address.ts";
import { loadClient } from "./client.ts";
import { KafkaSession } from "./session.ts";
import { checkTopic } from "./topic.ts";

export interface KafkaSourceOptions extends KafkaConnectionOptions {
  readonly topic: string;
  /** The consumer group, whose members share the topic's partitions. It begins with the oldest message. */
  readonly group: string;
  /** How long a member may be silent before its partitions go to others. @default "30s" */
  readonly sessionTimeout?: Duration;
}

/**
 * Reads a Kafka topic as a member of a consumer group. An offset is committed when everything before it is finished.
 *
 * @example
 * consume({ jobs: [payment], from: kafkaSource({ topic: "payments", group: "payments" }), inbox, onDead });
 */
export function kafkaSource(options: KafkaSourceOptions): Source {
  checkKnown(options, ["topic", "group", "brokers", "sessionTimeout"], "kafkaSource");
  checkBrokers(options);
  const { sessionTimeout = "30s" } = options;
  const resolved = {
    topic: checkTopic(options.topic, "kafkaSource's topic"),
    group: checkName(options.group, "kafkaSource's group"),
    // The broker itself allows less: 6 s to 30 min by default.
    sessionTimeoutMs: checkDuration(sessionTimeout, "kafkaSource's sessionTimeout", 1_000, 86_400_000),
  };
  return {
    kind: "kafka",
    reads: ({ transport, destination }) =>
      transport.kind === "kafka" &&
      destination === resolved.topic &&
      sharesBroker(transport, options.brokers),
    async open(context: SourceContext): Promise<SourceSession> {
      const client = await loadClient();
      return new KafkaSession({ ...resolved, ...context, client, address: parseKafka(options.brokers) });
    },
  };
}
