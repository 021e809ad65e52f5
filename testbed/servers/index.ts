import type { ServerKind } from "../server-kind.ts";
import { mysql, mysql8 } from "./mysql.ts";
import { postgres } from "./postgres.ts";
import { redis } from "./redis.ts";

/** Every kind of server, by the name that tests ask for it. */
export const kinds = { postgres, mysql, mysql8, redis } as const satisfies Readonly<
  Record<string, ServerKind>
>;

export type KindName = keyof typeof kinds;
