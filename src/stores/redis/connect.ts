import { EscapementError } from "../../errors.ts";
import { reconnectDelayMs } from "../../transient.ts";
import type { Connection, RedisClient } from "./client.ts";

/** A client that is not connected yet; the package is looked for only now. */
export async function newClient(
  connection: Connection,
  callTimeoutMs: number,
  who: "store" | "transport" = "store",
): Promise<RedisClient> {
  const { Redis, Cluster } = await import("ioredis").catch((error: unknown) => {
    throw new EscapementError(
      `${who}-missing-client`,
      `the Redis ${who} needs the package ioredis; install it with \`npm install ioredis\``,
      { cause: error },
    );
  });
  const delayMs = (tries: number): number => reconnectDelayMs(tries, Math.random());
  const common = {
    ...(connection.username === null ? {} : { username: connection.username }),
    ...(connection.password === null ? {} : { password: connection.password }),
    ...(connection.tls ? { tls: {} } : {}),
    lazyConnect: true,
    connectTimeout: callTimeoutMs,
    // A connection that stays silent this long is thrown away: it may lead into a black hole.
    socketTimeout: callTimeoutMs,
    // Whoever calls decides whether to repeat; what was sent on a connection that broke is not sent again behind his back.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    // After a failover the old primary answers this until the client asks again who the primary is.
    reconnectOnError: (error: Error): boolean => error.message.includes("READONLY"),
    disableClientInfo: true,
  };
  if (connection.mode === "cluster") {
    const client: RedisClient = new Cluster([...connection.nodes], {
      redisOptions: common,
      lazyConnect: true,
      enableOfflineQueue: false,
      clusterRetryStrategy: delayMs,
      retryDelayOnFailover: 0,
      slotsRefreshTimeout: Math.min(callTimeoutMs, 5_000),
    });
    return client;
  }
  const [node] = connection.nodes;
  const where =
    connection.mode === "sentinel"
      ? {
          sentinels: [...connection.nodes],
          ...(connection.primary === null ? {} : { name: connection.primary }),
          ...(connection.sentinelPassword === null ? {} : { sentinelPassword: connection.sentinelPassword }),
          sentinelRetryStrategy: delayMs,
          sentinelMaxConnections: 2,
        }
      : { ...node };
  const client: RedisClient = new Redis({
    ...common,
    ...where,
    db: connection.db,
    enableOfflineQueue: false,
    retryStrategy: delayMs,
  });
  return client;
}
