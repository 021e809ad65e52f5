import { systemClock } from "../clock.ts";
import { Consumer } from "./consumer.ts";
import { type ConsumeOptions, resolveConsumeOptions } from "./options.ts";

export type { MessageFacts } from "../message/message.ts";
export type { Delivered, ReceivedMessage, Source, SourceContext, SourceSession } from "../message/source.ts";
export { Consumer, type ConsumerCounts } from "./consumer.ts";
export { type HttpEndpoint, type HttpEndpointOptions, httpEndpoint } from "./http-endpoint.ts";
export type { ConsumeOptions, DeadMessage, HandlerOptions } from "./options.ts";

/**
 * Runs the handlers of definitions for messages from a broker: fire there, run here, by one definition.
 *
 * @example
 * const consumer = consume({
 *   jobs: [payment],
 *   from: kafkaSource({ topic: "payments", group: "payments" }),
 *   inbox: createInbox({ store: postgresInbox(process.env.DATABASE_URL) }),
 *   deadLetter: kafka({ topic: "payments.dead" }),
 * });
 * await consumer.start();
 */
export function consume(options: ConsumeOptions): Consumer {
  return new Consumer(resolveConsumeOptions(options), systemClock);
}
