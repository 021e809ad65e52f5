/**
 * A node for tests that need real processes: it works on the database it is given and writes what its handlers do to a log
 * outside of it, a line each, with the machine's monotonic clock.
 */
import { appendFileSync, readFileSync } from "node:fs";
import { createEscapement, defineJob, type HandlerContext } from "../../src/index.ts";
import type { Work } from "./fleet.ts";

export interface NodePlan {
  readonly store: string;
  readonly log: string;
  readonly lease: number;
  readonly concurrency: number;
  /** @default 100 */
  readonly poll?: number;
  readonly acceptWeakDurability?: boolean;
}

const plan: NodePlan = JSON.parse(process.argv[2] ?? "{}");

function write(what: string, { job }: HandlerContext<unknown>): void {
  const line = [what, job.id, job.token, process.pid, process.hrtime.bigint() / 1_000_000n].join(" ");
  appendFileSync(plan.log, `${line}\n`);
}

function processesThatStarted(): number {
  const starts = readFileSync(plan.log, "utf8")
    .split("\n")
    .filter((line) => line.startsWith("start "));
  return new Set(starts.map((line) => line.split(" ")[3])).size;
}

async function work(context: HandlerContext<Work>): Promise<string> {
  const { ms, how, together = 1 } = context.input;
  write("start", context);
  while (processesThatStarted() < together) await new Promise((resolve) => setTimeout(resolve, 20));
  if (how === "block") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  else if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
  write("end", context);
  return `done by ${process.pid}`;
}

const jobs = (["at-most-once", "at-least-once"] as const).map((delivery) =>
  defineJob<Work>({ name: delivery, delivery, run: work }),
);

const app = createEscapement({
  store: plan.store,
  jobs,
  lease: plan.lease,
  poll: plan.poll ?? 100,
  concurrency: plan.concurrency,
  acceptWeakDurability: plan.acceptWeakDurability ?? false,
});
app.on("stale", ({ job }) => appendFileSync(plan.log, `stale ${job.id} ${job.token} ${process.pid} 0\n`));
process.once("SIGTERM", () => void app.stop({ timeout: "20s" }).then(() => process.exit(0)));
await app.start();
process.send?.("ready");
