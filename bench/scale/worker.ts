// One worker process of the scale bench. It starts, waits for the queue to be resumed, and reports when it is asked to stop.

import { createEscapement, defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { openStore } from "./grounds.ts";

/** What a worker process did between the start and the stop. */
export interface WorkerReport {
  readonly jobs: number;
  readonly cpuMs: number;
  readonly rssBytes: number;
}

const [store = "", address = "", concurrency = ""] = process.argv.slice(2);
let jobs = 0;
const job = defineJob<{ n: number }>({
  name: "scale",
  run: () => {
    jobs += 1;
  },
});
const app = createEscapement({
  store: await openStore(store, address),
  jobs: [job],
  concurrency: Number(concurrency),
  log: silentLogger,
});
await app.start();
const before = process.cpuUsage();

process.on("message", () => {
  const { user, system } = process.cpuUsage(before);
  const report: WorkerReport = {
    jobs,
    cpuMs: (user + system) / 1_000,
    rssBytes: process.memoryUsage.rss(),
  };
  process.send?.(report, () => void app.stop().then(() => process.exit(0)));
});
process.send?.("ready");
