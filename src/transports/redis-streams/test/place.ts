import { randomUUID } from "node:crypto";
import { Cluster, Redis } from "ioredis";
import type { PrivateServer } from "../../../../testbed/index.ts";
import { FaultProxy } from "../../../proof/proxy.ts";
import { resolveOptions } from "../../../stores/redis/connection/options.ts";
import type { Arrived, FragilePlace, TransportPlace } from "../../../testing/transports/harness.ts";
import { decodeEntry } from "../entry.ts";
import { type RedisStreamsOptions, redisStreams } from "../route.ts";
import { streamOf } from "../stream-name.ts";

/** Streams under names that nobody else uses, read by a client of our own. */
export function redisPlace(
  url: string,
  { shards = 1, through = url }: { readonly shards?: number; readonly through?: string } = {},
): TransportPlace {
  const { connection } = resolveOptions({ url });
  const login = connection.password === null ? {} : { password: connection.password };
  const reader =
    connection.mode === "cluster"
      ? new Cluster([...connection.nodes], { redisOptions: login })
      : new Redis({ ...connection.nodes[0], ...login });
  reader.on("error", () => {});
  const options: Omit<RedisStreamsOptions, "stream"> = { url: through, shards, maxMessageBytes: 1_000_000 };
  return {
    tooLarge: JSON.stringify("x".repeat(1_000_000)),
    dedupes: false,
    route: async () => redisStreams({ stream: `test:${randomUUID()}`, ...options }),
    missing: () => null,
    async arrived(stream) {
      const all: Arrived[] = [];
      for (let shard = 0; shard < shards; shard++) {
        const entries = await reader.xrange(streamOf(stream, shard, shards), "-", "+");
        all.push(...entries.map(([, fields]) => decodeEntry(fields)));
      }
      return all;
    },
    close: async () => reader.disconnect(),
  };
}

/** A single server of one's own. */
export async function fragileRedis(server: PrivateServer): Promise<FragilePlace> {
  const way = await FaultProxy.start(server.url);
  const place = redisPlace(server.url, { through: way.url });
  return {
    ...place,
    way,
    stop: () => server.kill(),
    start: () => server.restart(),
    async close() {
      await place.close();
      await way.stop();
      await server.stop();
    },
  };
}

/** A Cluster of one's own. Its nodes say where they are, so that nothing can stand in the way. */
export async function fragileCluster(server: PrivateServer): Promise<FragilePlace> {
  const place = redisPlace(server.url, { shards: 5 });
  return {
    ...place,
    way: null,
    stop: () => server.kill(),
    start: () => server.restart(),
    async close() {
      await place.close();
      await server.stop();
    },
  };
}
