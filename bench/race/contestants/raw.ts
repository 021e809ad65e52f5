import { newId } from "../../../src/id.ts";
import type { RawLoop } from "../../beds/bed.ts";
import { openRaw as openMysql } from "../../beds/mysql.ts";
import { openRaw as openPostgres } from "../../beds/postgres.ts";
import { openRaw as openRedis } from "../../beds/redis.ts";
import { openRaw as openSqlite } from "../../beds/sqlite.ts";
import type { Contestant, Ground } from "../contestant.ts";

/** Jobs of a trip and of a bulk statement: more did not make it faster. */
const batch = 500;

/**
 * No library: the loop that one would write by hand for this one purpose, on the same ground, as ../../beds has it. It knows no retries,
 * limits, leases or schedules, runs a job's handler between two trips, and shows what the store and its client allow. Its concurrency is
 * always its batch.
 */
export const raw = (store: Ground["store"]): Contestant => ({
  name: "raw loop",
  store,
  disciplines: ["drain", "bulk"],
  settings: () => ({ batch }),
  prefetch: () => batch,
  async open(ground) {
    const loop = await openLoop(ground);
    return {
      addMany: (loads) =>
        loop.insert(
          loads.map((load) => ({ id: newId(Date.now()), input: JSON.stringify(load) })),
          batch,
        ),
      addOne: (load) => loop.insert([{ id: newId(Date.now()), input: JSON.stringify(load) }], 1),
      async work(_, handler) {
        void loop.drain(batch, ({ input }) => handler(JSON.parse(input)));
      },
      left: async () => (await loop.count()).left,
      kept: async () => (await loop.count()).finished,
      close: () => loop.close(),
    };
  },
});

function openLoop({ store, address, durability }: Ground): Promise<RawLoop> {
  switch (store) {
    case "sqlite":
      return openSqlite(address, durability);
    case "postgres":
      return openPostgres(address, "raw");
    case "mysql":
      return openMysql(address, "raw_");
    case "redis":
      return openRedis(address, "race");
  }
}
