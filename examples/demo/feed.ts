import { type Escapement, Operations } from "../../src/index.ts";
import {
  bookInvoice,
  chargeCard,
  encodeVideo,
  fetchVideo,
  importFeed,
  publishVideo,
  resizeImage,
  rollUp,
  sendNewsletter,
  sendSms,
  waitForReport,
} from "./jobs.ts";

/** Enqueues jobs of each guarantee: some now, and a little of everything every second. Returns what ends it. */
export async function feed(app: Escapement): Promise<() => void> {
  await app.enqueue(importFeed, { url: "https://example.org/old-feed" });
  await app.enqueue(sendSms, { to: "Ada" }, { delay: "3s", priority: 5 });
  await app.enqueue(waitForReport, { readyAt: Date.now() + 2_500 });
  await app.schedule("sales", { cron: "*/3 * * * * *", overlap: "skip" }, rollUp, { of: "sales" });
  let round = 0;
  const more = async (): Promise<void> => {
    round += 1;
    await Promise.all([
      app.enqueue(bookInvoice, { customer: round % 3, cents: 1_000 + round * 7 }),
      app.enqueue(resizeImage, { file: `photo-${round}.jpg` }),
      app.enqueue(sendSms, { to: "Grace" }, { delay: "2s" }),
    ]);
  };
  await more();
  return repeat(1_000, more);
}

/** What a dashboard has to show beyond that: limits, a backlog, a pause, a flow, and people who did something. */
export async function furnish(app: Escapement): Promise<() => void> {
  await app.configureQueue("sms", { rate: { limit: 1, per: "1s" } });
  await app.configureQueue("video", { concurrency: 1 });
  await app.enqueueMany(
    sendSms,
    ["Alan", "Barbara", "Edsger", "Frances", "Katherine", "Ken", "Margaret", "Tony"].map((to) => ({
      input: { to },
      tags: ["reminder"],
    })),
  );

  const people = new Operations(app);
  await people.pauseQueue("newsletter", { actor: "ada", reason: "the link to unsubscribe is broken" });
  const letters = await app.enqueueMany(
    sendNewsletter,
    Array.from({ length: 25 }, (_, n) => ({
      input: { to: `reader-${n + 1}@example.org` },
      tags: ["november"],
    })),
  );
  const last = letters.at(-1);
  if (last !== undefined) await people.cancel([last.id], { actor: "grace", reason: "has left the list" });
  await app.enqueue(
    chargeCard,
    { customer: 7, cents: 4_990, card: "4111 1111 1111 1111" },
    { delay: "1h", tags: ["subscription"] },
  );

  let video = 0;
  const makeVideo = async (): Promise<void> => {
    video += 1;
    const input = { video: `clip-${video}.mp4` };
    const fetched = await app.enqueue(fetchVideo, input);
    const encoded = await app.enqueueMany(
      encodeVideo,
      [480, 1080].map((height) => ({ input: { ...input, height }, after: [fetched] })),
    );
    await app.enqueue(publishVideo, input, { after: encoded });
  };
  await makeVideo();
  return repeat(10_000, makeVideo);
}

function repeat(everyMs: number, work: () => Promise<void>): () => void {
  const timer = setInterval(() => void work(), everyMs);
  return () => clearInterval(timer);
}
