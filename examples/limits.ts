// Limits across all processes on the store: per key, per second, per queue. And priorities.
import { setTimeout as sleep } from "node:timers/promises";
import { createEscapement, defineJob } from "../src/index.ts";

const active = new Map<string, number>();
let most = 0;

async function renderFor(customer: string): Promise<void> {
  active.set(customer, (active.get(customer) ?? 0) + 1);
  most = Math.max(most, active.get(customer) ?? 0);
  await sleep(20);
  active.set(customer, (active.get(customer) ?? 0) - 1);
}

// #region key
const render = defineJob<{ customer: string }>({
  name: "render",
  concurrency: { key: (input) => input.customer, limit: 1 }, // one at a time per customer
  rate: { limit: 20, per: "1s" }, // and 20 starts per second in total
  run: ({ input }) => renderFor(input.customer), // your own function
});
// #endregion

const order: string[] = [];
const mail = defineJob<string>({ name: "mail", queue: "mail", run: ({ input }) => void order.push(input) });

const app = createEscapement({ store: "sqlite:.escapement/limits.db", jobs: [render, mail] });
await app.start();

const renders = await app.enqueueMany(
  render,
  ["ada", "bob", "ada", "bob", "ada", "bob"].map((customer) => ({ input: { customer } })),
);
for (const { id } of renders) await app.result(id);
console.log(`at most ${most} render at a time for each customer`);

// #region queue
await app.configureQueue("mail", { concurrency: 1, rate: { limit: 100, per: "1s" } });
await app.pauseQueue("mail");
await app.enqueue(mail, "newsletter", { priority: -5 });
await app.enqueue(mail, "receipt");
const urgent = await app.enqueue(mail, "password reset", { priority: 10 });
await app.resumeQueue("mail");
// #endregion

await app.result(urgent.id);
while (order.length < 3) await sleep(10);
console.log(order.join(", "));
await app.stop();
