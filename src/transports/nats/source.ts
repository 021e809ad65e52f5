import type { Duration } from "../../duration.ts";
import { describe, EscapementError } from "../../errors.ts";
import type { Source, SourceContext, SourceSession } from "../../message/source.ts";
import { checkDuration, checkKnown } from "../../options.ts";
import { checkServers, parseNats, sharesServer } from "./address.ts";
import { loadClient, loadJetStream } from "./connect.ts";
import { NatsSession } from "./session.ts";
import { checkFilter, isCovered } from "./subject.ts";

export interface NatsSourceOptions {
  /** The stream. You must create it. */
  readonly stream: string;
  /** The durable consumer, with the same name in all processes that share the work; it is created if there is none. */
  readonly consumer: string;
  /** Only messages of this subject, which may have wildcards; for a consumer that is created here. @default all of the stream */
  readonly subject?: string;
  /** @default `ESCAPEMENT_NATS` */
  readonly servers?: string | readonly string[];
  /** How long a message may be in hand without a sign of life before another process gets it. An existing consumer has its own value; pass the same here. @default "30s" */
  readonly ackWait?: Duration;
}

/**
 * Reads a JetStream stream through a durable pull consumer.
 *
 * @example
 * consume({ jobs: [payment], from: natsSource({ stream: "PAYMENTS", consumer: "payments" }), inbox, onDead });
 */
export function natsSource(options: NatsSourceOptions): Source {
  checkKnown(options, ["stream", "consumer", "subject", "servers", "ackWait"], "natsSource");
  checkServers(options);
  const { subject, ackWait = "30s" } = options;
  const resolved = {
    stream: checkToken(options.stream, "natsSource's stream"),
    consumer: checkToken(options.consumer, "natsSource's consumer"),
    subject: subject === undefined ? null : checkFilter(subject, "natsSource's subject"),
    ackWaitMs: checkDuration(ackWait, "natsSource's ackWait", 100, 86_400_000),
  };
  return {
    kind: "nats",
    // Only the server knows which subjects a stream has; what this consumer reads of them is known here.
    reads: ({ transport, destination }) =>
      transport.kind === "nats" &&
      resolved.subject !== null &&
      isCovered(destination, resolved.subject) &&
      sharesServer(transport, options.servers),
    async open(context: SourceContext): Promise<SourceSession> {
      await loadClient();
      const client = await loadJetStream();
      return new NatsSession({ ...resolved, ...context, client, address: parseNats(options.servers) });
    },
  };
}

function checkToken(value: unknown, option: string): string {
  if (typeof value !== "string" || !/^[^\s\p{Cc}.*>/\\]{1,255}$/u.test(value)) {
    throw new EscapementError(
      "invalid-option",
      `expected ${option} to be a name without spaces, dots, slashes and wildcards, got ${describe(value)}`,
    );
  }
  return value;
}
