import type { EventEmitter } from "node:events";
import { cannotLoad } from "../../runtime/cannot-load.ts";
import type { KafkaAddress } from "./address.ts";

export type KafkaClient = typeof import("@platformatic/kafka");

let isGuarded = false;

/** The package is loaded only now. */
export async function loadClient(): Promise<KafkaClient> {
  const client = await import("@platformatic/kafka").catch(
    cannotLoad({
      code: "transport-missing-client",
      who: "the Kafka transport",
      packages: ["@platformatic/kafka"],
    }),
  );
  if (!isGuarded) client.instancesChannel.subscribe(guardConnection);
  isGuarded = true;
  return client;
}

/**
 * A connection that breaks during login emits its error twice, the second time without a listener, which would crash the process (seen with 2.12).
 * The caller has already seen the first one.
 */
function guardConnection(created: unknown): void {
  const { type, instance } = created as { readonly type: string; readonly instance: EventEmitter };
  if (type === "connection") instance.on("error", () => {});
}

/** What producers and consumers have in common. */
export function baseOptions({ brokers, tls, sasl }: KafkaAddress) {
  return {
    clientId: "escapement",
    bootstrapBrokers: [...brokers],
    connectTimeout: 5_000,
    requestTimeout: 30_000,
    ...(tls ? { tls: {} } : {}),
    ...(sasl === null ? {} : { sasl: { ...sasl } }),
  };
}
