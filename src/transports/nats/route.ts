import type { Duration } from "../../duration.ts";
import type { Route, Transport, TransportContext } from "../../message/transport.ts";
import { checkDuration, checkKnown } from "../../options.ts";
import { BatchingTransport, turnBatching } from "../batching.ts";
import { checkServers, parseNats } from "./address.ts";
import { loadClient } from "./connect.ts";
import { checkSubject } from "./subject.ts";
import { NatsTransport } from "./transport.ts";

export interface NatsOptions {
  /** The subject; a stream must listen to it. */
  readonly subject: string;
  /** `nats://user:password@a:4222,b:4222`, `tls://…`, or hosts. @default `ESCAPEMENT_NATS` */
  readonly servers?: string | readonly string[];
  /** @default "300s" */
  readonly dispatchTimeout?: Duration;
}

/**
 * Publishes to NATS JetStream, and waits for each acknowledgement. You must create the streams: without one that listens to the subject, a
 * publish is refused.
 *
 * @example
 * const payment = defineJob({ name: "payment", route: nats({ subject: "payments.due" }) });
 */
export function nats(options: NatsOptions): Route {
  checkKnown(options, ["subject", "servers", "dispatchTimeout"], "nats");
  checkServers(options);
  const { dispatchTimeout = "300s" } = options;
  const address = () => parseNats(options.servers);
  return {
    destination: checkSubject(options.subject, "nats' subject"),
    dispatchTimeoutMs: checkDuration(dispatchTimeout, "nats' dispatchTimeout"),
    transport: {
      kind: "nats",
      get address() {
        return JSON.stringify(address());
      },
      async open({ clock, log }: TransportContext): Promise<Transport> {
        const client = await loadClient();
        const transport = new NatsTransport({ address: address(), clock, log, newHeaders: client.headers });
        return new BatchingTransport(transport, clock, turnBatching);
      },
    },
  };
}
