import type { Contestant, Handler, Load, Session } from "../contestant.ts";
import { load } from "../peers.ts";

interface SidequestModule {
  Sidequest: {
    configure(options: object): Promise<unknown>;
    start(options: object): Promise<void>;
    stop(): Promise<void>;
    build(job: unknown): { enqueue(load: Load): Promise<unknown> };
    getBackend(): { countJobs(): Promise<Record<string, number>> } | undefined;
  };
}

/** How many single adds are under way in a bulk add: it has no other. */
const lanes = 50;

/**
 * Sidequest on MySQL in one process, its jobs inline: no message to a forked engine or a thread. It polls 100 times a second, ten times as
 * often as by default. Completed jobs are kept.
 */
export const sidequest: Contestant = {
  name: "sidequest",
  store: "mysql",
  settings: (concurrency) => ({
    maxConcurrentJobs: concurrency,
    runner: "inline",
    fork: false,
    jobPollingInterval: 10,
    "bulk add": `${lanes} single adds at a time`,
  }),
  prefetch: (concurrency) => concurrency,
  open: ({ address }) => open(address),
};

async function open(address: string): Promise<Session> {
  const { Sidequest } = await load<SidequestModule>("sidequest");
  const { RaceJob } = (await import("./sidequest-job.mjs" as string)) as { RaceJob: unknown };
  const engine = {
    backend: { driver: "@sidequest/mysql-backend", config: address },
    logger: { level: "error" },
    fork: false,
    runner: "inline",
    gracefulShutdown: false,
    jobPollingInterval: 10,
  };
  await Sidequest.configure(engine);
  const add = async (given: Load): Promise<void> => {
    await Sidequest.build(RaceJob).enqueue(given);
  };
  const counts = async (): Promise<Record<string, number>> =>
    (await Sidequest.getBackend()?.countJobs()) ?? {};
  return {
    async addMany(loads) {
      const rest = loads.values();
      await Promise.all(
        Array.from({ length: lanes }, async () => {
          for (const given of rest) await add(given);
        }),
      );
    },
    addOne: add,
    async work(concurrency: number, handler: Handler) {
      (globalThis as { raceHandler?: Handler }).raceHandler = handler;
      await Sidequest.start({
        ...engine,
        maxConcurrentJobs: concurrency,
        queues: [{ name: "default", concurrency }],
        queueDefaults: { concurrency },
        dashboard: { enabled: false },
      });
    },
    async left() {
      const { waiting = 0, claimed = 0, running = 0 } = await counts();
      return waiting + claimed + running;
    },
    kept: async () => (await counts())["completed"] ?? 0,
    close: () => Sidequest.stop(),
  };
}
