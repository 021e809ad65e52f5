import type { DatabaseSync } from "node:sqlite";
import { defineJob, snooze, UnrecoverableError } from "../../src/index.ts";

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** At most once: better no message than two. */
export const sendSms = defineJob<{ to: string }>({
  name: "send-sms",
  delivery: "at-most-once",
  run: async ({ input }) => {
    await pause(150);
    return `sent to ${input.to}`;
  },
});

/** At least once, the default: it fails at first, and is tried again until it is done. */
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

/** Asks to be called later, once; that counts as no try. */
export const waitForReport = defineJob<{ readyAt: number }>({
  name: "wait-for-report",
  run: ({ input }) => (Date.now() < input.readyAt ? snooze("1s") : "the report is ready"),
});

/** Fired by a schedule: each occurrence once, whichever node is first to plan it. */
export const rollUp = defineJob<{ of: string }>({
  name: "roll-up",
  run: ({ input, job }) => `${input.of} up to ${job.fireAt.toISOString().slice(11, 19)}`,
});
