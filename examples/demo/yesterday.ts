import { setTimeout as sleep } from "node:timers/promises";
import { newId } from "../../src/id.ts";
import {
  type AnyDefinition,
  Escapement,
  type EscapementOptions,
  type HandlerContext,
  type StoreFactory,
  UnrecoverableError,
} from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { sqlite } from "../../src/stores/sqlite/index.ts";
import { VirtualClock } from "../../src/testing/index.ts";
import { backUp, chargeCard, importFeed, jobs, refreshPrices, resizeImage, sendSms } from "./jobs.ts";

/** What was made up carries this tag. */
export const simulated = "simulated";

const minute = 60_000;
const hour = 60 * minute;

/** The schedules of the day; the simulation marks the jobs that they fire by their tags. */
export async function planTheDay(app: Escapement, tags: readonly string[] = []): Promise<void> {
  const backup = { cron: "0 * * * *", overlap: "skip" } as const;
  await app.schedule("backup", backup, backUp, { database: "shop" }, { tags });
  const prices = { cron: "*/15 * * * *", timezone: "Europe/Berlin" };
  await app.schedule("prices", prices, refreshPrices, { currency: "EUR" }, { tags });
}

/**
 * Writes a day of history in a few seconds: a real app on a clock that runs ahead to the present, on the same file. It was a bad day. The bank
 * and some feeds were down, backups were slow, somebody paused the prices, nothing ran for an hour, and in the end a node was killed.
 */
export async function simulateYesterday(file: string): Promise<void> {
  const present = Date.now();
  const clock = new VirtualClock(new Date(present - 24 * hour));
  // A made-up day need not survive a power cut, and a long lease needs few heartbeats.
  const store = sqlite({ path: file, durability: "normal" });
  const node = { clock, jobs: badDay(clock, present), log: silentLogger };
  const options = { ...node, store, acceptWeakDurability: true, lease: 12 * hour, poll: 10 * minute };
  {
    await using day = await startNode(options);
    const { app } = day;
    await planTheDay(app, [simulated]);
    for (let n = 0; n < 16; n += 1) {
      if (n === 4) await app.pauseSchedule("prices");
      if (n === 7) await app.resumeSchedule("prices");
      await app.enqueue(importFeed, { url: `https://example.org/feed-${n}` }, { tags: [simulated] });
      if (n > 8) await app.enqueueMany(chargeCard, charges(n));
      await clock.advance(hour);
    }
  }
  await freezeANode(store, clock, present);
  clock.skip(hour + 2 * minute);
  {
    await using _day = await startNode(options);
    await clock.advance(Date.now() - clock.now() - minute);
  }
  // This node is never stopped. For the store it was killed while it sent a message, which is lost: nobody knows whether it was sent.
  const killed = await startNode({ ...node, store: `sqlite:${file}` });
  await killed.app.enqueue(sendSms, { to: "Linus" }, { tags: [simulated] });
  await clock.advance(1_000);
}

/**
 * A node stands still in the middle of a job, as in a long pause of its machine. Its lease runs out, another node runs the job again, and what the
 * first one has to say when it goes on is refused.
 */
async function freezeANode(store: StoreFactory, clock: VirtualClock, present: number): Promise<void> {
  const itsClock = new VirtualClock(new Date(clock.now()));
  const options = { log: silentLogger, store, acceptWeakDurability: true, poll: 1_000 };
  const handlers = badDay(itsClock, present);
  await using frozen = await startNode({ ...options, clock: itsClock, jobs: handlers, concurrency: 1 });
  await frozen.app.enqueue(resizeImage, { file: "poster.jpg" }, { tags: [simulated] });
  await itsClock.advance(1_000);
  await clock.advance(40_000);
  {
    await using _other = await startNode({ ...options, clock, jobs: badDay(clock, present) });
    await clock.advance(2 * minute);
  }
  await itsClock.advance(10_000);
}

/** A node on a clock of its own, with ids and a name as every node has them. */
async function startNode({ clock, ...options }: EscapementOptions & { readonly clock: VirtualClock }) {
  const runtime = { clock, random: Math.random, newId: () => newId(clock.now()) };
  const app = new Escapement(options, runtime);
  await app.start();
  return {
    app,
    /** Stops at once, and moves time as far as that takes. */
    async [Symbol.asyncDispose](): Promise<void> {
      let isOver = false;
      const stopping = app.stop({ timeout: 0 }).finally(() => {
        isOver = true;
      });
      while (!isOver) await clock.advance(1_000);
      await stopping;
    },
  };
}

function charges(n: number) {
  return [1, 2].map((customer) => ({
    input: { customer: n * 2 + customer, cents: 1_990, card: "4111 1111 1111 1111" },
    tags: [simulated],
  }));
}

/** The definitions of the demo, with handlers that take virtual time and have bad luck. */
function badDay(clock: VirtualClock, present: number): AnyDefinition[] {
  // A handler that heeds its signal is run again by the next node at once; one that does not, when its lease would have ended.
  const take = (ms: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      clock.after(ms, resolve);
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  const hoursAgo = ({ job }: HandlerContext<unknown>): number =>
    Math.round((present - job.fireAt.getTime()) / hour);
  const handlers: Readonly<Record<string, (context: HandlerContext<never>) => unknown>> = {
    [backUp.name]: async (context) => {
      if (hoursAgo(context) === 5) throw new Error("the disk of the backup server is full");
      await take([20, 11].includes(hoursAgo(context)) ? 2.5 * hour : 4 * minute, context.signal);
    },
    [refreshPrices.name]: async ({ job, signal }) => {
      await take(2_000, signal);
      if (job.attempt === 1 && job.fireAt.getMinutes() === 45) throw new Error("the exchange is busy");
    },
    [chargeCard.name]: async ({ input, signal }: HandlerContext<{ customer: number }>) => {
      await take(300, signal);
      throw new Error(`the bank did not answer for customer ${input.customer}`);
    },
    [importFeed.name]: ({ input }: HandlerContext<{ url: string }>) => {
      throw new UnrecoverableError(`${input.url} is gone`);
    },
    [resizeImage.name]: async ({ input, signal }: HandlerContext<{ file: string }>) => {
      await take(5_000, signal);
      return `${input.file} at 640×480`;
    },
    [sendSms.name]: () => sleep(2 ** 30, undefined, { ref: false }),
  };
  return jobs.map((definition) => ({ ...definition, run: handlers[definition.name] ?? definition.run }));
}
