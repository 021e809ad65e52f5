import { createEscapement, defineJob, type StoreFactory } from "../../../src/index.ts";
import { silentLogger } from "../../../src/log.ts";
import type { Contestant, Ground, Load } from "../contestant.ts";

/**
 * Ourselves, with nothing but defaults: no setting is changed for the race, except for `concurrency`, which every contestant gets, and
 * SQLite's `durability`, which the ground decides.
 */
export const escapement = (store: Ground["store"]): Contestant => ({
  name: "escapement",
  store,
  settings: (concurrency) => ({ concurrency }),
  // It claims up to 1,000 jobs ahead of short handlers.
  prefetch: (concurrency) => concurrency + 1_000,
  async open(ground) {
    const factory = await openStore(ground);
    let handle: (load: Load) => void = () => {};
    const job = defineJob<Load>({ name: "race", run: ({ input }) => handle(input) });
    const client = createEscapement({ store: factory, jobs: [job], log: silentLogger });
    await client.count();
    let worker: ReturnType<typeof createEscapement> | null = null;
    return {
      addMany: async (loads) => {
        await client.enqueueMany(
          job,
          loads.map((input) => ({ input })),
        );
      },
      addOne: async (load) => {
        await client.enqueue(job, load);
      },
      async work(concurrency, handler) {
        handle = handler;
        worker = createEscapement({
          store: await openStore(ground),
          jobs: [job],
          concurrency,
          log: silentLogger,
        });
        await worker.start();
      },
      left: () => client.count({ states: ["waiting", "active", "blocked"] }),
      kept: () => client.count({ states: ["succeeded"] }),
      async close() {
        await worker?.stop();
        await client.stop();
      },
    };
  },
});

async function openStore({ store, address, durability }: Ground): Promise<StoreFactory> {
  switch (store) {
    case "sqlite":
      return (await import("../../../src/stores/sqlite/index.ts")).sqlite({ path: address, durability });
    case "postgres":
      return (await import("../../../src/stores/postgres/index.ts")).postgres(address);
    case "mysql":
      return (await import("../../../src/stores/mysql/index.ts")).mysql(address);
    case "redis":
      return (await import("../../../src/stores/redis/index.ts")).redis(address);
  }
}
