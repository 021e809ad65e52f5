// Delays, retries, snoozing, and giving up.
import { createEscapement, defineJob, snooze, UnrecoverableError } from "../src/index.ts";

// #region retry
const charge = defineJob<{ amount: number }>({
  name: "charge",
  retry: { attempts: 6, backoff: { type: "exponential", delay: "50ms", max: "15m", jitter: 0.1 } },
  timeout: "1m",
  run: ({ input, job }) => {
    if (input.amount <= 0) throw new UnrecoverableError("nothing to charge"); // dead at once
    if (job.attempt < 3) throw new Error("the bank does not answer"); // retried
    return `charged ${input.amount} on attempt ${job.attempt}`;
  },
});
// #endregion

let looks = 0;
const isReady = (): boolean => {
  looks += 1;
  return looks > 2;
};

// #region snooze
const report = defineJob<null>({
  name: "report",
  run: () => (isReady() ? "written" : snooze("100ms")), // isReady is your own; a snooze uses up no attempt
});
// #endregion

const app = createEscapement({ store: "sqlite:.escapement/retries.db", jobs: [charge, report] });
// #region events
app.on("failed", ({ job, error, retryInMs }) => {
  console.log(`${job.name} failed on attempt ${job.attempt} (${error.message}), retry in ${retryInMs} ms`);
});
app.on("snoozed", ({ job }) => console.log(`${job.name} snoozed`));
app.on("dead", ({ job, reason }) => console.log(`${job.name} is dead: ${reason}`));
// #endregion
await app.start();

// #region delay
const soon = await app.enqueue(charge, { amount: 42 }, { delay: "100ms" });
const then = await app.enqueue(report, null, { runAt: new Date(Date.now() + 100) });
// #endregion
const never = await app.enqueue(charge, { amount: 0 });

console.log(await app.result(soon.id));
console.log(await app.result(then.id));
await app.result(never.id).catch((error) => console.log(error.code));
await app.stop();
