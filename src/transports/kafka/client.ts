import { EscapementError } from "../../errors.ts";
import type { KafkaAddress } from "./address.ts";

export type KafkaClient = typeof import("@platformatic/kafka");

/** The package is looked for only now. */
export function loadClient(): Promise<KafkaClient> {
  return import("@platformatic/kafka").catch((cause: unknown) => {
    throw new EscapementError(
      "transport-missing-client",
      "the Kafka transport needs the package @platformatic/kafka; install it with `npm install @platformatic/kafka`",
      { cause },
    );
  });
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
