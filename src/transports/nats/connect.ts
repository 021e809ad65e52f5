import type { NatsConnection } from "@nats-io/transport-node";
import { cannotLoad } from "../../runtime/cannot-load.ts";
import type { NatsAddress } from "./address.ts";

export const connectTimeoutMs = 5_000;

const cannotLoadClient = cannotLoad({
  code: "transport-missing-client",
  who: "the NATS transport",
  packages: ["@nats-io/transport-node", "@nats-io/jetstream"],
});

/** The package is loaded only now. */
export function loadClient(): Promise<typeof import("@nats-io/transport-node")> {
  return import("@nats-io/transport-node").catch(cannotLoadClient);
}

/** The package for streams and their consumers. */
export function loadJetStream(): Promise<typeof import("@nats-io/jetstream")> {
  return import("@nats-io/jetstream").catch(cannotLoadClient);
}

/**
 * A connection that ends when it breaks. The client's own reconnect would keep unsent messages and send them on the next connection, maybe
 * long after they were reported as lost.
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
