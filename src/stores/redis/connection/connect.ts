import { cannotLoad } from "../../../runtime/cannot-load.ts";
import { reconnectDelayMs } from "../../../runtime/transient.ts";
import type { Connection, RedisClient } from "./client.ts";

/** A client that is not connected yet; the package is loaded only now. */
export async function newClient(
  connection: Connection,
  callTimeoutMs: number,
  who: "store" | "transport" = "store",
): Promise<RedisClient> {
  const { Redis, Cluster } = await import("ioredis").catch(
    cannotLoad({ code: `${who}-missing-client`, who: `the Redis ${who}`, packages: ["ioredis"] }),
  );
  const delayMs = (attempt: number): number => reconnectDelayMs(attempt, Math.random());
  const common = {
    ...(connection.username === null ? {} : { username: connection.username }),
    ...(connection.password === null ? {} : { password: connection.password }),
    ...(connection.tls ? { tls: {} } : {}),
    lazyConnect: true,
    connectTimeout: callTimeoutMs,
    // A connection that stays silent this long is discarded: it may lead into a black hole.
    socketTimeout: callTimeoutMs,
    // The caller decides whether to retry; a command sent on a connection that broke is never resent without the caller knowing.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    // After a failover the old primary answers this until the client asks again which server is the primary.
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
