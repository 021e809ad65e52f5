import type { Clock } from "../../clock.ts";
import type { Store, StoreContext, StoreFactory } from "../../store.ts";
import type { RedisClient } from "./client.ts";
import { newClient } from "./connect.ts";
import { Link } from "./link.ts";
import { type RedisOptions, type ResolvedOptions, resolveOptions, whereOf } from "./options.ts";
import { RedisStore } from "./store.ts";

export type { RedisClient, RedisNode } from "./client.ts";
export { type RedisInboxOptions, redisInbox } from "./inbox.ts";
export type { RedisOptions } from "./options.ts";

/**
 * Keeps everything on Redis 6.2 or later, or on Valkey: a single server, one under Sentinel, or a Cluster. What can be lost under
 * each of its settings is in docs/REDIS.md.
 *
 * @example
 * const app = createEscapement({ store: redis("redis://localhost:6379"), jobs: [invoice] });
 */
export function redis(urlOrOptions: string | RedisOptions): StoreFactory {
  const { client, clock, ...resolved } = resolveOptions(urlOrOptions);
  return { open: (context) => open(resolved, context, client, clock) };
}

/** Opens a store by its address: what the heartbeat's thread calls. */
export function openStore(options: unknown, context: StoreContext): Promise<Store> {
  return open(options as ResolvedOptions, context, null, null);
}

async function open(
  options: ResolvedOptions,
  context: StoreContext,
  given: RedisClient | null,
  clock: Clock | null,
): Promise<Store> {
  const { connection, callTimeoutMs } = options;
  const client = given ?? (await newClient(connection, callTimeoutMs));
  const link = new Link({
    client,
    owned: given === null,
    mode: connection.mode,
    where: whereOf(connection),
    callTimeoutMs,
    log: context.log,
  });
  const isPlain = given === null && clock === null;
  try {
    return await RedisStore.open({
      link,
      options,
      context,
      clock,
      address: isPlain ? { module: import.meta.url, options } : null,
      newListener: async () => given?.duplicate() ?? newClient(connection, callTimeoutMs),
    });
  } catch (error) {
    link.close();
    throw error;
  }
}
