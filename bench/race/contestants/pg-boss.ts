import type { Contestant, Load, Session } from "../contestant.ts";
import { load } from "../peers.ts";

interface PgBossModule {
  PgBoss: new (options: object) => PgBoss;
}

interface PgBoss {
  on(event: string, listener: () => void): void;
  start(): Promise<unknown>;
  stop(options: object): Promise<void>;
  createQueue(name: string, options?: object): Promise<void>;
  insert(name: string, jobs: { data: Load }[]): Promise<unknown>;
  send(name: string, data: Load): Promise<unknown>;
  work(name: string, options: object, handler: (jobs: { data: Load }[]) => Promise<void>): Promise<string>;
  getDb(): { executeSql(sql: string): Promise<{ rows: { count: string }[] }> };
}

const chunk = 5_000;

/**
 * pg-boss with batches, `burstWhenBatchFull`, so that a full batch is followed by the next at once, and NOTIFY for pick-up: chosen from its
 * type documentation, values not tuned. A batch counts as its concurrency: 100 is two workers with batches of 50. Completed jobs are kept.
 */
export const pgBoss: Contestant = {
  name: "pg-boss",
  store: "postgres",
  settings: (concurrency) => ({
    ...workOptions(concurrency),
    insert: `${chunk} a call`,
    "queue.notify": true,
  }),
  prefetch: (concurrency) => concurrency,
  open: ({ address }, clean) => open(address, clean),
};

function workOptions(concurrency: number) {
  const localConcurrency = concurrency >= 100 ? 2 : 1;
  return {
    batchSize: Math.ceil(concurrency / localConcurrency),
    localConcurrency,
    pollingIntervalSeconds: 0.5,
    notifyPollingIntervalSeconds: 0.5,
    burstWhenBatchFull: true,
    // A batch of one is never "full": the ready count keeps it going, as far as its cached figure allows.
    burstWhenReadyExceeds: 1,
  };
}

async function open(connectionString: string, clean: boolean): Promise<Session> {
  const { PgBoss } = await load<PgBossModule>("pg-boss");
  const boss = new PgBoss({ connectionString, useListenNotify: true, schedule: false });
  boss.on("error", () => {});
  await boss.start();
  if (clean) await boss.createQueue("race", { notify: true });
  const count = async (condition: string): Promise<number> => {
    const { rows } = await boss
      .getDb()
      .executeSql(`select count(*) from pgboss.job where name = 'race' and ${condition}`);
    return Number(rows[0]?.count);
  };
  return {
    async addMany(loads) {
      for (let start = 0; start < loads.length; start += chunk)
        await boss.insert(
          "race",
          loads.slice(start, start + chunk).map((data) => ({ data })),
        );
    },
    addOne: async (data) => {
      await boss.send("race", data);
    },
    async work(concurrency, handler) {
      await boss.work("race", workOptions(concurrency), async (jobs) => {
        for (const { data } of jobs) handler(data);
      });
    },
    left: () => count("state < 'completed'"),
    kept: () => count("state = 'completed'"),
    close: () => boss.stop({ graceful: false, close: true }),
  };
}
