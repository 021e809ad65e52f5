import { systemClock } from "../src/clock.ts";
import { type HistoryEntry, historyKeptMs, noFigures, stepMs } from "../src/history.ts";
import { createEscapement, defineJob } from "../src/index.ts";
import { silentLogger } from "../src/log.ts";
import type { StoreFactory } from "../src/store/opening.ts";
import type { Store } from "../src/store/store.ts";

const perQueue = 10;

/** Queues and names that end jobs in every minute. */
export const pairs: readonly [Pair, ...Pair[]] = [
  { queue: "q0", name: "n0" },
  ...Array.from({ length: 199 }, (_, n) => ({
    queue: `q${Math.floor((n + 1) / perQueue)}`,
    name: `n${n + 1}`,
  })),
];

interface Pair {
  readonly queue: string;
  readonly name: string;
}

export const scheduleKey = "nightly";
const actors = ["ann", "bob", "deploy"];

/** A day of minutes, 30 days of hours, occurrences and an audit log. */
export async function fillPast(factory: StoreFactory, progress: (line: string) => void): Promise<void> {
  const store = await factory.open({ namespace: "default", clock: systemClock, log: silentLogger });
  try {
    await fillHistory(store, progress);
    for (let page = 0; page < 20; page += 1) await fillAudit(store, page);
  } finally {
    await store.close();
  }
  const report = defineJob<null>({ name: "report" });
  await using app = createEscapement({ store: factory, jobs: [report], log: silentLogger });
  await app.schedule(scheduleKey, { cron: "*/10 * * * *" }, report, null);
  const now = Date.now();
  await app.backfill(scheduleKey, new Date(now - 30 * 24 * stepMs.hour), new Date(now));
}

async function fillHistory(store: Store, progress: (line: string) => void): Promise<void> {
  const { minute, hour } = historyKeptMs;
  const agos = [
    ...Array.from({ length: minute / stepMs.minute }, (_, n) => n * stepMs.minute),
    ...Array.from({ length: (hour - minute) / stepMs.hour }, (_, n) => minute + n * stepMs.hour),
  ];
  for (const [n, agoMs] of agos.entries()) {
    const entries = pairs.map((pair): HistoryEntry => ({ ...noFigures, ...pair, agoMs, ...figures }));
    await store.recordHistory({ node: "filler", sequence: n + 1, entries });
    if (n % 500 === 499) progress(`${n + 1} steps of history`);
  }
}

const figures = {
  ...{ succeeded: 90, failed: 5, dead: 1, runs: 96, runSumMs: 9_600, runMaxMs: 800 },
  ...{ lateSumMs: 960, lateMaxMs: 70, late: [80, 16, 0, 0, 0, 0, 0], dueMax: 12 },
};

async function fillAudit(store: Store, page: number): Promise<void> {
  const entries = Array.from({ length: 500 }, (_, n) => ({
    id: `entry-${page}-${n}`,
    actor: actors[n % actors.length] ?? "ann",
    action: "redrive",
    target: `job:${n}`,
    reason: "bench",
    outcome: null,
  }));
  await store.record({ entries });
}
