import type { NatsConnection } from "@nats-io/transport-node";
import { EscapementError } from "../../errors.ts";
import type { NatsAddress } from "./address.ts";

export const connectTimeoutMs = 5_000;

function missingClient(cause: unknown): never {
  throw new EscapementError(
    "transport-missing-client",
    "the NATS transport needs the packages @nats-io/transport-node and @nats-io/jetstream; install them with `npm install @nats-io/transport-node @nats-io/jetstream`",
    { cause },
  );
}

/** The package is looked for only now. */
export function loadClient(): Promise<typeof import("@nats-io/transport-node")> {
  return import("@nats-io/transport-node").catch(missingClient);
}

/** The package for streams and their consumers. */
export function loadJetStream(): Promise<typeof import("@nats-io/jetstream")> {
  return import("@nats-io/jetstream").catch(missingClient);
}

/**
 * A connection that ends when it breaks. The client's own way would keep what was not sent and send it on the next connection, maybe
 * long after it was reported as lost.
 */
export async function connectOnce(address: NatsAddress): Promise<NatsConnection> {
  const { connect } = await loadClient();
  const { servers, user, pass, token, tls } = address;
  return connect({
    servers: [...servers],
    ...(user === null ? {} : { user }),
    ...(pass === null ? {} : { pass }),
    ...(token === null ? {} : { token }),
    ...(tls ? { tls: {} } : {}),
    name: "escapement",
    reconnect: false,
    ignoreClusterUpdates: true,
    timeout: connectTimeoutMs,
    pingInterval: 10_000,
    maxPingOut: 2,
  });
}
