// What a small BullMQ app becomes: see docs/FROM-BULLMQ.md.
// #region main
import { createEscapement, defineJob, type HandlerContext } from "../src/index.ts";

const welcome = defineJob({
  name: "welcome",
  queue: "mail", // new Queue("mail"), new Worker("mail", …)
  retry: { attempts: 3, backoff: { delay: "1s" } },
  run: async ({ input, job, progress, signal }: HandlerContext<{ to: string }>) => {
    progress(50); // job.updateProgress(50)
    signal.throwIfAborted();
    return `welcomed ${input.to}, attempt ${job.attempt}`; // job.attemptsMade + 1
  },
});

const app = createEscapement({
  store: process.env["ESCAPEMENT_STORE"] ?? "sqlite:.escapement/mail.db", // or redis://…, postgres://…
  jobs: [welcome],
  concurrency: 10,
});
app.on("dead", ({ job, reason }) => console.error(job.id, reason)); // worker.on("failed", …)
await app.start();

const receipt = await app.enqueue(welcome, { to: "ada" }, { id: "welcome:ada", delay: "100ms" }); // queue.add(…, { jobId, delay })
console.log(await app.result(receipt)); // job.waitUntilFinished(queueEvents)

await app.schedule("digest", { cron: "0 7 * * *", timezone: "Europe/Berlin" }, welcome, { to: "all" }); // upsertJobScheduler
// #endregion
console.log((await app.getSchedule("digest"))?.nextAt !== null);
await app.stop();
