import type { EventEmitter } from "node:events";
import { EscapementError } from "../../errors.ts";
import type { KafkaAddress } from "./address.ts";

export type KafkaClient = typeof import("@platformatic/kafka");

let isGuarded = false;

/** The package is looked for only now. */
export async function loadClient(): Promise<KafkaClient> {
  const client = await import("@platformatic/kafka").catch((cause: unknown) => {
    throw new EscapementError(
      "transport-missing-client",
      "the Kafka transport needs the package @platformatic/kafka; install it with `npm install @platformatic/kafka`",
      { cause },
    );
  });
  if (!isGuarded) client.instancesChannel.subscribe(guardConnection);
  isGuarded = true;
  return client;
}

/**
 * A connection that breaks while it logs in tells of it twice, the second time to nobody, which would end the process (seen with 2.12).
 * Whoever waits for it has heard the first time.
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
