import type { StoreAddress, StoreContext, StoreFactory } from "../../store/opening.ts";
import type { Store } from "../../store/store.ts";
import type { RedisClient } from "./connection/client.ts";
import { newClient } from "./connection/connect.ts";
import { Link } from "./connection/link.ts";
import { type RedisOptions, type ResolvedOptions, resolveOptions, whereOf } from "./connection/options.ts";
import { openRedisStore } from "./store.ts";

export type { RedisClient, RedisNode } from "./connection/client.ts";
export type { RedisOptions } from "./connection/options.ts";
export { type RedisInboxOptions, redisInbox } from "./inbox.ts";

/**
 * Keeps everything on Redis 6.2 or later, or on Valkey: a single server, one under Sentinel, or a Cluster. docs/REDIS.md says what
 * can be lost under each setting.
 *
 * @example
 * const app = createEscapement({ store: redis("redis://localhost:6379"), jobs: [invoice] });
 */
export function redis(urlOrOptions: string | RedisOptions): StoreFactory {
  const options = typeof urlOrOptions === "string" ? { url: urlOrOptions } : urlOrOptions;
  const resolved = resolveOptions(options);
  return { open: (context) => open(resolved, context, addressOf(options)) };
}

/** Opens a store by its address, for the heartbeat's thread. */
export function openStore(options: unknown, context: StoreContext): Promise<Store> {
  return redis(options as RedisOptions).open(context);
}

/** Another thread can use neither a client nor a clock of this one. */
function addressOf({ client, clock, ...options }: RedisOptions): StoreAddress | null {
  return client === undefined && clock === undefined ? { module: import.meta.url, options } : null;
}

async function open(
  options: ResolvedOptions,
  context: StoreContext,
  address: StoreAddress | null,
): Promise<Store> {
  const { connection, callTimeoutMs, client: given } = options;
  const client = given ?? (await newClient(connection, callTimeoutMs));
  const link = new Link({
    client,
    owned: given === null,
    mode: connection.mode,
    where: whereOf(connection),
    callTimeoutMs,
    log: context.log,
  });
  try {
    return await openRedisStore({
      link,
      options,
      context,
      address,
      newListener: async () => (given === null ? newClient(connection, callTimeoutMs) : listenerLike(given)),
    });
  } catch (error) {
    link.close();
    throw error;
  }
}

/** The channel resubscribes itself: the client's own resubscribe would crash the process if the connection broke during it. */
function listenerLike(given: RedisClient): RedisClient {
  const listener = given.duplicate();
  Object.assign(listener.options, { autoResubscribe: false });
  return listener;
}
