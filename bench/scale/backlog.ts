// npm run bench:backlog -- --store postgres --waiting 10000,1000000,10000000 --jobs 200000 --last 1000000
// What a drain costs, and how much memory its worker takes, beside ever more due jobs that wait behind it.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { createEscapement, defineJob, type Escapement } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { descendants } from "../../testbed/process-tree.ts";
import { AuditFailure } from "../audit.ts";
import { pick, readSize, UsageError } from "../options.ts";
import { processMs } from "../race/processor-time.ts";
import { openStore, type ScaleGround, scaleGrounds } from "./grounds.ts";

/** What the worker says when it has run its jobs. */
interface Report {
  readonly jobs: number;
  readonly ms: number;
  readonly cpuMs: number;
  readonly rssMb: readonly number[];
}

interface Stage {
  /** What the worker ran until it had stopped. */
  readonly ran: number;
  /** Jobs that were still waiting when the worker had run its own. */
  readonly waiting: number;
  readonly jobs: number;
  readonly jobsPerSecond: number;
  readonly workerUs: number;
  readonly serverUs: number;
  readonly rssMb: readonly number[];
}

const job = defineJob<{ n: number }>({ name: "scale" });
const concurrency = 100;
const build = new URL("../../dist/index.js", import.meta.url).href;

const { values } = parseArgs({
  options: {
    store: { type: "string", default: "redis" },
    waiting: { type: "string", default: "10000,1000000,10000000" },
    jobs: { type: "string" },
    last: { type: "string" },
    node: { type: "string", multiple: true, default: [] },
    json: { type: "string" },
  },
});

async function fill(app: Escapement, from: number, upTo: number): Promise<void> {
  for (let n = from; n < upTo; n += 20_000) {
    const inputs = Array.from({ length: Math.min(20_000, upTo - n) }, (_, i) => ({ input: { n: n + i } }));
    await app.enqueueMany(job, inputs);
  }
}

async function runStage(ground: ScaleGround, waiting: number, jobs: number): Promise<Stage> {
  const worker = fork(
    new URL("backlog-worker.mjs", import.meta.url),
    [build, ground.address, String(concurrency), String(jobs)],
    { execArgv: values.node },
  );
  await nextMessage(worker);
  const before = serverMs(worker);
  const report = (await nextMessage(worker)) as Report;
  const server = serverMs(worker) - before;
  const ran = Number(await nextMessage(worker));
  if (worker.exitCode === null) await once(worker, "exit");
  return {
    ran,
    waiting,
    jobs,
    jobsPerSecond: (report.jobs / report.ms) * 1_000,
    workerUs: (report.cpuMs * 1_000) / report.jobs,
    serverUs: (server * 1_000) / report.jobs,
    rssMb: report.rssMb,
  };
}

async function nextMessage(worker: ChildProcess): Promise<unknown> {
  const [message] = await once(worker, "message");
  return message;
}

/** Processor time of the servers, which are this process's other children. */
function serverMs(worker: ChildProcess): number {
  const { pid = 0 } = worker;
  const own = new Set([pid, ...descendants(pid)]);
  return descendants(process.pid)
    .filter((one) => !own.has(one))
    .reduce((sum, one) => sum + processMs(one), 0);
}

/** What ran has succeeded, and the rest still waits. */
async function audit(app: Escapement, enqueued: number, ran: number): Promise<void> {
  const counts = await app.countBy(["state"]);
  const of = (wanted: string): number => counts.find(({ state }) => state === wanted)?.count ?? 0;
  if (of("succeeded") === ran && of("waiting") === enqueued - ran) return;
  throw new AuditFailure(
    `of ${enqueued} jobs ${ran} ran, ${of("succeeded")} succeeded and ${of("waiting")} still wait`,
  );
}

try {
  const usual = readSize("jobs", { default: 200_000, max: 10_000_000 }, values.jobs);
  const last = readSize("last", { default: usual, max: 10_000_000 }, values.last);
  const sizes = values.waiting
    .split(",")
    .map((size) => readSize("waiting", { default: 1, max: 10_000_000 }, size));
  const ground = await pick("--store", scaleGrounds, values.store)();
  try {
    console.log(`${ground.description}; concurrency ${concurrency}, node ${values.node.join(" ")}`);
    await using app = createEscapement({
      store: await openStore(values.store, ground.address),
      log: silentLogger,
    });
    const stages: Stage[] = [];
    let enqueued = 0;
    let ran = 0;
    for (const [index, waiting] of sizes.entries()) {
      const jobs = index === sizes.length - 1 ? last : usual;
      await fill(app, enqueued, ran + jobs + waiting);
      enqueued = Math.max(enqueued, ran + jobs + waiting);
      const stage = await runStage(ground, waiting, jobs);
      ran += stage.ran;
      await audit(app, enqueued, ran);
      stages.push(stage);
      const ratio = (stages[0]?.jobsPerSecond ?? 0) / stage.jobsPerSecond;
      console.log(
        `${waiting} waiting: ${stage.jobsPerSecond.toFixed(0)} jobs/s (${ratio.toFixed(2)} times the cost of the first), ` +
          `worker ${stage.workerUs.toFixed(1)} µs a job, server ${stage.serverUs.toFixed(1)} µs a job, ` +
          `memory ${stage.rssMb.map((mb) => mb.toFixed(0)).join(" ")} MB`,
      );
    }
    if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(stages, null, 2)}\n`);
  } finally {
    await ground.close();
  }
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(error.message);
  process.exitCode = 2;
}
