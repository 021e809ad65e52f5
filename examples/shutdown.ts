// A worker process that stops gracefully on SIGTERM, as orchestrators send it.
import { setTimeout as sleep } from "node:timers/promises";
import { createEscapement, defineJob } from "../src/index.ts";

const slow = defineJob<null>({ name: "slow", run: () => sleep(300, "finished") });

// #region main
const app = createEscapement({ store: "sqlite:.escapement/shutdown.db", jobs: [slow] });
await app.start();

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.once(signal, async () => {
    await app.stop({ timeout: "20s" }); // less than the orchestrator's grace period
    process.exit(0);
  });
}
// #endregion

app.on("succeeded", ({ result }) => console.log(`before it stopped, the handler ${result}`));
app.on("started", () => process.kill(process.pid, "SIGTERM"));
await app.enqueue(slow, null);
await sleep(60_000);
