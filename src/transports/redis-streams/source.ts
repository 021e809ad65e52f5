import { hostname } from "node:os";
import type { Duration } from "../../duration.ts";
import type { Source, SourceContext, SourceSession } from "../../message/source.ts";
import { checkKey, checkName } from "../../names.ts";
import { checkBoolean, checkDuration, checkInteger, checkKnown } from "../../options.ts";
import { newStreamClient } from "./client.ts";
import { checkUrl, connectingTo } from "./connecting.ts";
import { writesTo } from "./same-streams.ts";
import { RedisStreamsSession } from "./session.ts";

export interface RedisStreamsSourceOptions {
  /** The same as the sender's. */
  readonly stream: string;
  /** The consumer group; it is created if there is none, and begins with the oldest entry. */
  readonly group: string;
  /** @default `ESCAPEMENT_REDIS` */
  readonly url?: string;
  /** The same as the sender's. @default 1 */
  readonly shards?: number;
  /** How long an entry may be in hand without a sign of life before another consumer takes it. @default "30s" */
  readonly lease?: Duration;
  /** Whether entries are deleted from the stream once they are acknowledged; not when other groups read it too. @default false */
  readonly deleteHandled?: boolean;
}

/**
 * Reads a Redis Stream as a member of a consumer group, and takes over what a dead member had in hand.
 *
 * @example
 * consume({ jobs: [payment], from: redisStreamsSource({ stream: "payments", group: "payments" }), inbox, onDead });
 */
export function redisStreamsSource(options: RedisStreamsSourceOptions): Source {
  checkKnown(options, ["stream", "group", "url", "shards", "lease", "deleteHandled"], "redisStreamsSource");
  checkUrl(options);
  const { shards = 1, lease = "30s", deleteHandled = false } = options;
  const resolved = {
    stream: checkKey(options.stream, "redisStreamsSource's stream"),
    group: checkName(options.group, "redisStreamsSource's group"),
    shards: checkInteger(shards, 1, 1_024, "redisStreamsSource's shards"),
    leaseMs: checkDuration(lease, "redisStreamsSource's lease", 100, 86_400_000),
    deleteHandled: checkBoolean(deleteHandled, "redisStreamsSource's deleteHandled"),
  };
  return {
    kind: "redis-streams",
    reads: (route) => writesTo(route, { ...resolved, url: options.url }),
    async open(context: SourceContext): Promise<SourceSession> {
      const connecting = connectingTo(options.url);
      const member = `${hostname()}-${process.pid}-${crypto.randomUUID().slice(0, 8)}`;
      // A read that waits for entries blocks its connection.
      const reader = await newStreamClient(connecting, context.log);
      const client = await newStreamClient(connecting, context.log);
      return new RedisStreamsSession({ ...resolved, ...context, member, reader, client });
    },
  };
}
