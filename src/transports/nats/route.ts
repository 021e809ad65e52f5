import { type Duration, parseDuration } from "../../duration.ts";
import { describe, EscapementError } from "../../errors.ts";
import { checkKnown } from "../../options.ts";
import type { Route, Transport, TransportContext } from "../../transport.ts";
import { parseNats } from "./address.ts";
import { loadClient } from "./connect.ts";
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
 * Publishes to NATS JetStream, and waits for each acknowledgement. Streams are yours to make: without one that listens to the subject, a
 * publish is refused.
 *
 * @example
 * const payment = defineJob({ name: "payment", route: nats({ subject: "payments.due" }) });
 */
export function nats(options: NatsOptions): Route {
  checkKnown(options, ["subject", "servers", "dispatchTimeout"], "nats");
  const address = () => parseNats(options.servers);
  return {
    destination: checkSubject(options.subject, "nats' subject"),
    dispatchTimeoutMs: parseDuration(options.dispatchTimeout ?? "300s", "nats' dispatchTimeout"),
    transport: {
      kind: "nats",
      gathers: true,
      get address() {
        return JSON.stringify(address());
      },
      async open({ clock, log }: TransportContext): Promise<Transport> {
        const client = await loadClient();
        return new NatsTransport({ address: address(), clock, log, newHeaders: client.headers });
      },
    },
  };
}

/** Messages go to one subject, so that it has no wildcards. */
function checkSubject(value: unknown, option: string): string {
  if (typeof value !== "string" || !/^[^\s.*>]+(\.[^\s.*>]+)*$/u.test(value) || value.length > 255) {
    throw new EscapementError(
      "invalid-option",
      `expected ${option} to be a subject such as "payments.due", without wildcards and spaces, got ${describe(value)}`,
    );
  }
  return value;
}
