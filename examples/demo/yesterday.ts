import { setTimeout as sleep } from "node:timers/promises";
import {
  type AnyDefinition,
  type Escapement,
  type HandlerContext,
  UnrecoverableError,
} from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { sqlite } from "../../src/stores/sqlite/index.ts";
import { createTestEscapement, VirtualClock } from "../../src/testing/index.ts";
import { backUp, chargeCard, importFeed, jobs, refreshPrices, sendSms } from "./jobs.ts";

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
  const clock = new VirtualClock(new Date(Date.now() - 24 * hour));
  // A made-up day need not survive a power cut, and a long lease needs few heartbeats.
  const store = sqlite({ path: file, durability: "normal" });
  const node = { clock, jobs: badDay(clock), log: silentLogger };
  const options = { ...node, store, acceptWeakDurability: true, lease: 12 * hour, poll: 10 * minute };
  {
    await using app = await createTestEscapement(options);
    await planTheDay(app, [simulated]);
    for (let n = 0; n < 16; n += 1) {
      if (n === 4) await app.pauseSchedule("prices");
      if (n === 7) await app.resumeSchedule("prices");
      await app.enqueue(importFeed, { url: `https://example.org/feed-${n}` }, { tags: [simulated] });
      if (n > 8) await app.enqueueMany(chargeCard, charges(n));
      await clock.advance(hour);
    }
  }
  clock.skip(hour + 5 * minute);
  {
    await using _app = await createTestEscapement(options);
    await clock.advance(Date.now() - clock.now() - minute);
  }
  // This node is never stopped. For the store it was killed while it sent a message, which is lost: nobody knows whether it was sent.
  const killed = await createTestEscapement({ ...node, store: `sqlite:${file}` });
  await killed.enqueue(sendSms, { to: "Linus" }, { tags: [simulated] });
  await clock.advance(1_000);
}

function charges(n: number) {
  return [1, 2].map((customer) => ({
    input: { customer: n * 2 + customer, cents: 1_990, card: "4111 1111 1111 1111" },
    tags: [simulated],
  }));
}

/** The definitions of the demo, with handlers that take virtual time and have bad luck. */
function badDay(clock: VirtualClock): AnyDefinition[] {
  // A handler that heeds its signal is run again by the next node at once; one that does not, when its lease would have ended.
  const take = (ms: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      clock.after(ms, resolve);
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  const hoursAgo = ({ job }: HandlerContext<unknown>): number =>
    Math.round((Date.now() - job.fireAt.getTime()) / hour);
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
    [sendSms.name]: () => sleep(2 ** 30, undefined, { ref: false }),
  };
  return jobs.map((definition) => ({ ...definition, run: handlers[definition.name] ?? definition.run }));
}
