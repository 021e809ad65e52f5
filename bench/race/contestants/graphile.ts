import type { Contestant, Load, Session } from "../contestant.ts";
import { load } from "../peers.ts";

interface Graphile {
  run(options: object): Promise<{ stop(): Promise<void>; promise: Promise<void> }>;
  makeWorkerUtils(options: object): Promise<{
    addJob(name: string, payload: Load): Promise<unknown>;
    addJobs(specs: { identifier: string; payload: Load }[]): Promise<unknown>;
    migrate(): Promise<void>;
    withPgClient<T>(work: (client: Client) => Promise<T>): Promise<T>;
    release(): Promise<void>;
  }>;
  Logger: new (factory: () => () => void) => object;
}

interface Client {
  query(sql: string): Promise<{ rows: { count: string }[] }>;
}

const chunk = 5_000;
const localQueue = 500;

/**
 * Graphile Worker twice: `fast` has a local queue of 500 jobs and gathers completions, two settings that its type documentation
 * describes as the way to throughput; their values are ours, not a preset of its own, and not tuned. The other is what a user gets who changes
 * nothing but `concurrentJobs`. Completed jobs are deleted: it has no other way.
 */
export const graphile = (kind: "fast" | "default"): Contestant => ({
  name: kind === "fast" ? "graphile-fast" : "graphile",
  store: "postgres",
  settings: (concurrency) => ({
    concurrentJobs: concurrency,
    addJobs: `${chunk} a call`,
    ...(kind === "fast"
      ? { "localQueue.size": localQueue, completeJobBatchDelay: 0, failJobBatchDelay: 0 }
      : {}),
  }),
  prefetch: (concurrency) => (kind === "fast" ? localQueue : concurrency),
  open: ({ address }) => open(address, kind),
});

async function open(connectionString: string, kind: "fast" | "default"): Promise<Session> {
  const { run, makeWorkerUtils, Logger } = await load<Graphile>("graphile-worker");
  const logger = new Logger(() => () => {});
  const utils = await makeWorkerUtils({ connectionString, logger });
  await utils.migrate();
  let runner: Awaited<ReturnType<Graphile["run"]>> | null = null;
  return {
    async addMany(loads) {
      for (let start = 0; start < loads.length; start += chunk)
        await utils.addJobs(
          loads.slice(start, start + chunk).map((payload) => ({ identifier: "race", payload })),
        );
    },
    addOne: async (payload) => {
      await utils.addJob("race", payload);
    },
    async work(concurrency, handler) {
      const fast = { localQueue: { size: localQueue }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
      const worker = {
        connectionString,
        concurrentJobs: concurrency,
        maxPoolSize: 10,
        ...(kind === "fast" ? fast : {}),
      };
      runner = await run({
        preset: { worker: { ...worker, logger } },
        noHandleSignals: true,
        taskList: { race: async (payload: Load) => handler(payload) },
      });
    },
    left: () =>
      utils.withPgClient(async (client) => {
        const { rows } = await client.query("select count(*) from graphile_worker.jobs");
        return Number(rows[0]?.count);
      }),
    kept: async () => null,
    async close() {
      await runner?.stop();
      await utils.release();
    },
  };
}
