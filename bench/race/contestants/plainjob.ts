import type { Contestant, Ground, Session } from "../contestant.ts";
import { load } from "../peers.ts";

interface Plainjob {
  better(database: object): object;
  defineQueue(options: object): Queue;
  defineWorker(
    type: string,
    processor: (job: { data: string }) => void,
    options: object,
  ): { start(): Promise<void>; stop(): Promise<void> };
}

interface Queue {
  add(type: string, data: unknown): unknown;
  addMany(type: string, data: readonly unknown[]): unknown;
  countJobs(options: { status: number }): number;
  close(): void;
}

interface BetterSqlite {
  default: new (path: string) => { pragma(text: string): void };
}

const [pending, processing, done] = [0, 1, 2] as const;
const silent = { error() {}, warn() {}, info() {}, debug() {} };

/**
 * plainjob on better-sqlite3, in WAL mode as it sets itself, `synchronous` as the ground says. A worker runs one job at a time, so a
 * concurrency of n is n workers in the process, which is what its documentation does with processes. Completed jobs are kept.
 */
export const plainjob: Contestant = {
  name: "plainjob",
  store: "sqlite",
  settings: (concurrency) => ({ workers: concurrency, pollIntervall: 10, driver: "better-sqlite3" }),
  prefetch: (concurrency) => concurrency,
  open: (ground) => open(ground),
};

async function open({ address, durability }: Ground): Promise<Session> {
  const { better, defineQueue, defineWorker } = await load<Plainjob>("plainjob");
  const { default: Database } = await load<BetterSqlite>("better-sqlite3");
  const database = new Database(address);
  const queue = defineQueue({ connection: better(database), logger: silent });
  database.pragma(`synchronous = ${durability}`);
  database.pragma("busy_timeout = 30000");
  const workers: ReturnType<Plainjob["defineWorker"]>[] = [];
  return {
    addMany: async (loads) => {
      queue.addMany("race", loads);
    },
    addOne: async (given) => {
      queue.add("race", given);
    },
    async work(concurrency, handler) {
      for (let n = 0; n < concurrency; n += 1) {
        const worker = defineWorker("race", ({ data }) => handler(JSON.parse(data)), {
          queue,
          logger: silent,
          pollIntervall: 10,
        });
        workers.push(worker);
        void worker.start();
      }
    },
    left: async () => queue.countJobs({ status: pending }) + queue.countJobs({ status: processing }),
    kept: async () => queue.countJobs({ status: done }),
    async close() {
      await Promise.all(workers.map((worker) => worker.stop()));
      queue.close();
    },
  };
}
