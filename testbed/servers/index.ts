import type { ServerKind } from "../server-kind.ts";
import { kafka } from "./kafka.ts";
import { mysql, mysql8 } from "./mysql.ts";
import { nats } from "./nats.ts";
import { pgbouncer } from "./pgbouncer.ts";
import { postgres } from "./postgres.ts";
import { redis } from "./redis.ts";
import { redisCluster } from "./redis-cluster.ts";
import { redisSentinel } from "./redis-sentinel.ts";

/** Every kind of server, by the name that tests ask for it. */
export const kinds = {
  postgres,
  pgbouncer,
  mysql,
  mysql8,
  redis,
  redisSentinel,
  redisCluster,
  kafka,
  nats,
} as const satisfies Readonly<Record<string, ServerKind>>;

export type KindName = keyof typeof kinds;
