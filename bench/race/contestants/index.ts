import type { Contestant, Ground } from "../contestant.ts";
import { bullmq } from "./bullmq.ts";
import { escapement } from "./escapement.ts";
import { graphile } from "./graphile.ts";
import { pgBoss } from "./pg-boss.ts";
import { plainjob } from "./plainjob.ts";
import { raw } from "./raw.ts";
import { sidequest } from "./sidequest.ts";

/** Who races on each store; we are the first, and the loop written by hand is the last. */
export const contestants: Readonly<Record<Ground["store"], readonly Contestant[]>> = {
  sqlite: [escapement("sqlite"), plainjob, raw("sqlite")],
  postgres: [
    escapement("postgres"),
    graphile("fast"),
    graphile("default"),
    pgBoss,
    bullmq("postgres"),
    raw("postgres"),
  ],
  mysql: [escapement("mysql"), sidequest, raw("mysql")],
  redis: [escapement("redis"), bullmq("redis"), raw("redis")],
};
