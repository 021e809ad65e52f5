import type { Contestant, Ground } from "../contestant.ts";
import { bullmq } from "./bullmq.ts";
import { escapement } from "./escapement.ts";
import { graphile } from "./graphile.ts";
import { pgBoss } from "./pg-boss.ts";
import { plainjob } from "./plainjob.ts";
import { sidequest } from "./sidequest.ts";

/** Who races on each store; we are the first. */
export const contestants: Readonly<Record<Ground["store"], readonly Contestant[]>> = {
  sqlite: [escapement("sqlite"), plainjob],
  postgres: [escapement("postgres"), graphile("fast"), graphile("default"), pgBoss, bullmq("postgres")],
  mysql: [escapement("mysql"), sidequest],
  redis: [escapement("redis"), bullmq("redis")],
};
