import type { Contestant, Ground, Handler, Load, Session } from "../contestant.ts";
import { load } from "../peers.ts";

interface Bullmq {
  Queue: new (name: string, options: object, backend?: unknown) => Queue;
  Worker: new (
    name: string,
    processor: (job: { data: Load }) => Promise<void>,
    options: object,
    backend?: unknown,
  ) => {
    close(): Promise<void>;
    waitUntilReady(): Promise<unknown>;
    on(event: string, listener: () => void): void;
  };
  createPostgresBackend: unknown;
}

interface Queue {
  add(name: string, data: Load): Promise<unknown>;
  addBulk(jobs: { name: string; data: Load }[]): Promise<unknown>;
  getJobCounts(...states: string[]): Promise<Record<string, number>>;
  waitUntilReady(): Promise<unknown>;
  close(): Promise<void>;
}

const chunk = 5_000;

/**
 * BullMQ as its documentation shows it: `addBulk` for many jobs, one Worker with `concurrency`, completed jobs kept, which is its default.
 * It has no local queue: a worker asks for the next job when it finishes one, in the same script.
 */
export const bullmq = (store: "redis" | "postgres"): Contestant => ({
  name: store === "redis" ? "bullmq" : "bullmq-postgres",
  store,
  settings: (concurrency) => ({ concurrency, addBulk: `${chunk} a call`, removeOnComplete: "no (default)" }),
  prefetch: (concurrency) => concurrency,
  open: (ground) => open(ground),
});

async function open(ground: Ground): Promise<Session> {
  const { Queue, Worker, createPostgresBackend } = await load<Bullmq>("bullmq");
  const backend = ground.store === "postgres" ? createPostgresBackend : undefined;
  const connection = connectionTo(ground);
  const queue = new Queue("race", { connection }, backend);
  await queue.waitUntilReady();
  let worker: InstanceType<Bullmq["Worker"]> | null = null;
  return {
    async addMany(loads) {
      for (let start = 0; start < loads.length; start += chunk)
        await queue.addBulk(loads.slice(start, start + chunk).map((data) => ({ name: "race", data })));
    },
    addOne: async (data) => {
      await queue.add("race", data);
    },
    async work(concurrency: number, handler: Handler) {
      const processor = async ({ data }: { data: Load }): Promise<void> => handler(data);
      worker = new Worker("race", processor, { connection, concurrency }, backend);
      worker.on("error", () => {});
      await worker.waitUntilReady();
    },
    async left() {
      const counts = await queue.getJobCounts("wait", "active", "delayed", "prioritized", "paused");
      return Object.values(counts).reduce((sum, count) => sum + count, 0);
    },
    kept: async () => (await queue.getJobCounts("completed"))["completed"] ?? 0,
    async close() {
      await worker?.close();
      await queue.close();
    },
  };
}

function connectionTo({ store, address }: Ground): object {
  if (store === "postgres") return { connectionString: address, migrate: true };
  const { hostname, port, password } = new URL(address);
  return { host: hostname, port: Number(port), password: password || undefined, maxRetriesPerRequest: null };
}
