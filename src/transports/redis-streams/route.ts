import type { Duration } from "../../duration.ts";
import type { Route, Transport, TransportContext } from "../../message/transport.ts";
import { checkKey } from "../../names.ts";
import { checkDuration, checkInteger, checkKnown } from "../../options.ts";
import { BatchingTransport, turnBatching } from "../batching.ts";
import { newStreamClient } from "./client.ts";
import { checkUrl, connectingTo, redisUrl } from "./connecting.ts";
import { RedisStreamsTransport } from "./transport.ts";

export interface RedisStreamsOptions {
  /** The key of the stream. */
  readonly stream: string;
  /** As for the store: `redis://…`, `rediss://…`, `redis+sentinel://…`, `redis+cluster://…`. @default `ESCAPEMENT_REDIS` */
  readonly url?: string;
  /** Keeps about this many entries, and drops the oldest, read or not. @default all of them */
  readonly maxLength?: number;
  /**
   * Spreads the messages over this many streams, `stream:{0}` to `stream:{n-1}`, by their key; on a Cluster these are on different nodes.
   * Order is kept within a key.
   *
   * @default 1: the one stream, under its own name
   */
  readonly shards?: number;
  /** A message larger than this is refused for good. @default 16777216 */
  readonly maxMessageBytes?: number;
  /** @default "300s" */
  readonly dispatchTimeout?: Duration;
}

/**
 * Publishes to a Redis Stream. What Redis can lose, it loses here too: see docs/TRANSPORTS.md.
 *
 * @example
 * const payment = defineJob({ name: "payment", route: redisStreams({ stream: "payments" }) });
 */
export function redisStreams(options: RedisStreamsOptions): Route {
  checkKnown(
    options,
    ["stream", "url", "maxLength", "shards", "maxMessageBytes", "dispatchTimeout"],
    "redisStreams",
  );
  checkUrl(options);
  const { maxLength, shards = 1, maxMessageBytes = 16_777_216, dispatchTimeout = "300s" } = options;
  const resolved = {
    maxLength:
      maxLength === undefined
        ? null
        : checkInteger(maxLength, 1, Number.MAX_SAFE_INTEGER, "redisStreams' maxLength"),
    shards: checkInteger(shards, 1, 1_024, "redisStreams' shards"),
    maxMessageBytes: checkInteger(maxMessageBytes, 1, 512 * 1_048_576, "redisStreams' maxMessageBytes"),
  };
  return {
    destination: checkKey(options.stream, "redisStreams' stream"),
    dispatchTimeoutMs: checkDuration(dispatchTimeout, "redisStreams' dispatchTimeout"),
    transport: {
      kind: "redis-streams",
      get address() {
        return JSON.stringify([redisUrl(options.url), resolved]);
      },
      async open(context: TransportContext): Promise<Transport> {
        const connecting = connectingTo(options.url);
        const client = await newStreamClient(connecting, context.log);
        const transport = new RedisStreamsTransport({
          ...resolved,
          ...context,
          client,
          where: connecting.where,
          isCluster: connecting.connection.mode === "cluster",
        });
        return new BatchingTransport(transport, context.clock, turnBatching);
      },
    },
  };
}
