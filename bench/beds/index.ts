import type { Bed } from "./bed.ts";
import { mysqlBed } from "./mysql.ts";
import { postgresBed } from "./postgres.ts";
import { redisBed } from "./redis.ts";
import { sqliteBed } from "./sqlite.ts";

/** How to set up each store that can be measured; `folder` is for those that keep files. */
export const beds: Readonly<Record<string, (folder: string) => Bed | Promise<Bed>>> = {
  sqlite: sqliteBed,
  postgres: postgresBed,
  mysql: mysqlBed,
  redis: redisBed,
};
