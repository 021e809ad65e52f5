import type { DatabaseSync } from "node:sqlite";
import { defineJob, snooze, UnrecoverableError } from "../../src/index.ts";

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** At most once: better no message than two. */
export const sendSms = defineJob<{ to: string }>({
  name: "send-sms",
  queue: "sms",
  delivery: "at-most-once",
  run: async ({ input }) => {
    await pause(150);
    return `sent to ${input.to}`;
  },
});

/** At least once, the default: the first attempt fails, the next one succeeds. */
export const resizeImage = defineJob<{ file: string }>({
  name: "resize-image",
  retry: { attempts: 3, backoff: { delay: "1s" } },
  run: async ({ input, job, progress }) => {
    await pause(200);
    progress(50);
    if (job.attempt === 1) throw new Error("the image server is busy");
    await pause(200);
    return `${input.file} at 640×480`;
  },
});

/** Effectively once: the row and the job's completion commit together. */
export const bookInvoice = defineJob<{ customer: number; cents: number }>({
  name: "book-invoice",
  delivery: "effectively-once",
  concurrency: { key: ({ customer }) => String(customer), limit: 1 },
  run: async ({ input, job, tx }) => {
    await pause(100);
    return tx((db: DatabaseSync) => {
      db.exec(
        "create table if not exists demo_invoices (key text primary key, customer int, cents int) strict",
      );
      const insert = db.prepare("insert into demo_invoices values (?, ?, ?)");
      insert.run(job.idempotencyKey, input.customer, input.cents);
      return `booked ${(input.cents / 100).toFixed(2)} for customer ${input.customer}`;
    });
  },
});

/** Never succeeds: it goes dead, with its error, until somebody redrives it. */
export const importFeed = defineJob<{ url: string }>({
  name: "import-feed",
  run: ({ input }) => {
    throw new UnrecoverableError(`${input.url} is gone`);
  },
});

/** Asks to be called later, once; that does not count as an attempt. */
export const waitForReport = defineJob<{ readyAt: number }>({
  name: "wait-for-report",
  run: ({ input }) => (Date.now() < input.readyAt ? snooze("1s") : "the report is ready"),
});

/** Fired by a schedule: each occurrence once, whichever node is first to plan it. */
export const rollUp = defineJob<{ of: string }>({
  name: "roll-up",
  run: ({ input, job }) => `${input.of} up to ${job.fireAt.toISOString().slice(11, 19)}`,
});

/** Failed all night, while the bank was down. It is back: redrive the group of failures, and they succeed. */
export const chargeCard = defineJob<{ customer: number; cents: number; card: string }>({
  name: "charge-card",
  retry: { attempts: 2, backoff: { delay: "5s" } },
  run: async ({ input }) => {
    await pause(300);
    return { customer: input.customer, charged: input.cents };
  },
});

/** Fired every hour, but not while the last one still runs. */
export const backUp = defineJob<{ database: string }>({
  name: "back-up",
  retry: { attempts: 2, backoff: { delay: "30s" } },
  run: async ({ input, log, progress }) => {
    for (const part of [1, 2, 3, 4]) {
      await pause(500);
      progress(part * 25);
    }
    log(`${input.database}: 4 parts written`);
  },
});

/** Fired every quarter of an hour. */
export const refreshPrices = defineJob<{ currency: string }>({
  name: "refresh-prices",
  run: async ({ input }) => {
    await pause(200);
    return { currency: input.currency, prices: 1_204 };
  },
});

/** Its queue is paused. */
export const sendNewsletter = defineJob<{ to: string }>({
  name: "send-newsletter",
  queue: "newsletter",
  run: () => "sent",
});

/** The first of a flow: the encoders wait for it, and the publisher waits for them. */
export const fetchVideo = defineJob<{ video: string }>({
  name: "fetch-video",
  queue: "video",
  run: async ({ input, log }) => {
    await pause(800);
    log(`fetched ${input.video}, 48 MB`);
  },
});

/** Takes a while, and reports how far it is. */
export const encodeVideo = defineJob<{ video: string; height: number }>({
  name: "encode-video",
  queue: "video",
  timeout: "1m",
  run: async ({ input, log, progress, signal }) => {
    for (let percent = 10; percent <= 100; percent += 10) {
      signal.throwIfAborted();
      await pause(400);
      progress({ percent });
      if (percent % 50 === 0) log(`${input.video}: ${percent} % of the frames at ${input.height}p`);
    }
  },
});

export const publishVideo = defineJob<{ video: string }>({
  name: "publish-video",
  queue: "video",
  run: ({ input }) => `https://videos.example/${input.video}`,
});

/** All of them, for the app. */
export const jobs = [
  ...[sendSms, resizeImage, bookInvoice, importFeed, waitForReport, rollUp, chargeCard, backUp],
  ...[refreshPrices, sendNewsletter, fetchVideo, encodeVideo, publishVideo],
];
