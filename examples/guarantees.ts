// One process is killed in the middle of three jobs, one of each guarantee. Another process looks at what became of them.
import { fork } from "node:child_process";
import { once } from "node:events";
import { DatabaseSync } from "node:sqlite";
import { createEscapement, type Delivery, defineJob, type HandlerContext } from "../src/index.ts";

const file = ".escapement/guarantees.db";
const isVictim = process.argv[2] === "victim";

/** The victim never gets to its end; whoever comes after it does. */
async function work({ job, tx }: HandlerContext<null>): Promise<string> {
  console.log(`${isVictim ? "victim" : "rescuer"}: ${job.name} is dispatched, token ${job.token}`);
  process.send?.("dispatched");
  if (isVictim) await new Promise(() => {});
  if (job.delivery !== "effectively-once") return "done";
  return tx((db: DatabaseSync) => {
    db.prepare("insert into effects (key) values (?)").run(job.idempotencyKey);
    return "done, with its effect";
  });
}

const define = (delivery: Delivery) => defineJob<null>({ name: delivery, delivery, run: work });
const jobs = [define("at-most-once"), define("at-least-once"), define("effectively-once")];
const app = createEscapement({ store: `sqlite:${file}`, jobs, lease: "1s", poll: "100ms" });

if (isVictim) {
  await app.start();
} else {
  const receipts = await Promise.all(jobs.map((job) => app.enqueue(job, null)));
  const database = new DatabaseSync(file);
  database.exec("create table if not exists effects (key text primary key)");

  const victim = fork(import.meta.filename, ["victim"]);
  let dispatched = 0;
  // Several may come at once, so that they are counted, not waited for one after the other.
  await new Promise<void>((resolve) => {
    victim.on("message", () => {
      dispatched += 1;
      if (dispatched === jobs.length) resolve();
    });
  });
  victim.kill("SIGKILL");
  await once(victim, "exit");
  console.log("victim: killed");

  await app.start();
  for (const { id } of receipts) {
    await app.result(id, { timeout: "20s" }).catch(() => {});
    const job = await app.get(id);
    console.log(`${job?.name}: ${job?.state} (${job?.result ?? job?.reason}), crashes ${job?.crashes}`);
  }
  await app.stop();
}
