// npm run bench:scale -- --store redis --jobs 200000 --processes 1,2,4 --json FILE
// How a drain grows with the number of worker processes, beside what the costs of one process predict.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createEscapement, defineJob, type Escapement } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { descendants } from "../../testbed/process-tree.ts";
import { pick, readSize, UsageError } from "../options.ts";
import { processMs } from "../race/processor-time.ts";
import { median } from "../statistics.ts";
import { openStore, type ScaleGround, scaleGrounds } from "./grounds.ts";
import { type Costs, predict } from "./model.ts";
import type { WorkerReport } from "./worker.ts";

interface Drain extends Costs {
  readonly processes: number;
  readonly jobsPerSecond: number;
  /** Of one core. */
  readonly serverUtilisation: number;
  readonly wireBytes: number;
  readonly diskBytes: number;
  readonly rssMb: number;
}

const job = defineJob<{ n: number }>({ name: "scale" });
const concurrency = 100;

const { values } = parseArgs({
  options: {
    store: { type: "string", default: "redis" },
    jobs: { type: "string" },
    processes: { type: "string", default: "1,2,4" },
    runs: { type: "string" },
    json: { type: "string" },
  },
});

async function drainOnce(
  store: string,
  ground: ScaleGround,
  processes: number,
  jobs: number,
): Promise<Drain> {
  await ground.empty();
  await using app = createEscapement({ store: await openStore(store, ground.address), log: silentLogger });
  await app.pauseQueue("default");
  for (let n = 0; n < jobs; n += 10_000) {
    const inputs = Array.from({ length: Math.min(10_000, jobs - n) }, (_, i) => ({ input: { n: n + i } }));
    await app.enqueueMany(job, inputs);
  }
  const workers = await Promise.all(
    Array.from({ length: processes }, () => startWorker(store, ground.address)),
  );
  const servers = serverPids(workers);
  const cpuBefore = sumMs(servers);
  const bytesBefore = await ground.bytes();
  const startedAt = performance.now();
  await app.resumeQueue("default");
  await untilEmpty(app);
  const seconds = (performance.now() - startedAt) / 1_000;
  const bytes = await ground.bytes();
  const serverMs = sumMs(serverPids(workers)) - cpuBefore;
  const reports = await Promise.all(workers.map(stopWorker));
  await audit(app, reports, jobs);
  return {
    processes,
    jobsPerSecond: jobs / seconds,
    workerUs: (reports.reduce((sum, { cpuMs }) => sum + cpuMs, 0) * 1_000) / jobs,
    serverUs: (serverMs * 1_000) / jobs,
    serverUtilisation: serverMs / (seconds * 1_000),
    wireBytes: (bytes.wire - bytesBefore.wire) / jobs,
    diskBytes: (bytes.disk - bytesBefore.disk) / jobs,
    rssMb: Math.max(...reports.map(({ rssBytes }) => rssBytes)) / 2 ** 20,
  };
}

async function startWorker(store: string, address: string): Promise<ChildProcess> {
  const worker = fork(new URL("worker.ts", import.meta.url), [store, address, String(concurrency)]);
  await once(worker, "message");
  return worker;
}

async function stopWorker(worker: ChildProcess): Promise<WorkerReport> {
  const answered = once(worker, "message");
  worker.send("stop");
  const [report] = await answered;
  await once(worker, "exit");
  return report;
}

function serverPids(workers: readonly ChildProcess[]): number[] {
  const own = new Set(workers.flatMap(({ pid = 0 }) => [pid, ...descendants(pid)]));
  return descendants(process.pid).filter((pid) => !own.has(pid));
}

function sumMs(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + processMs(pid), 0);
}

async function untilEmpty(app: Escapement): Promise<void> {
  while ((await app.count({ states: ["waiting", "active"] })) > 0) await delay(20);
}

/** Every job ran once, and its success is in the store. */
async function audit(app: Escapement, reports: readonly WorkerReport[], jobs: number): Promise<void> {
  const ran = reports.reduce((sum, report) => sum + report.jobs, 0);
  const succeeded = await app.count({ states: ["succeeded"] });
  if (ran !== jobs || succeeded !== jobs) {
    throw new Error(`audit: ${jobs} jobs were enqueued, ${ran} ran and ${succeeded} succeeded`);
  }
}

function medianOf(drains: readonly Drain[]): Drain {
  const figure = (pickOne: (drain: Drain) => number): number => median(drains.map(pickOne));
  return {
    processes: drains[0]?.processes ?? 0,
    jobsPerSecond: figure(({ jobsPerSecond }) => jobsPerSecond),
    workerUs: figure(({ workerUs }) => workerUs),
    serverUs: figure(({ serverUs }) => serverUs),
    serverUtilisation: figure(({ serverUtilisation }) => serverUtilisation),
    wireBytes: figure(({ wireBytes }) => wireBytes),
    diskBytes: figure(({ diskBytes }) => diskBytes),
    rssMb: figure(({ rssMb }) => rssMb),
  };
}

try {
  const jobs = readSize("jobs", { default: 200_000, max: 10_000_000 }, values.jobs);
  const runs = readSize("runs", { default: 3, max: 100 }, values.runs);
  const ground = await pick("--store", scaleGrounds, values.store)();
  try {
    console.log(
      `${ground.description}; ${jobs} jobs, ${runs} runs, concurrency ${concurrency} in each process`,
    );
    const drains: Drain[] = [];
    for (const processes of values.processes.split(",").map(Number)) {
      if (drains.length === 0) await drainOnce(values.store, ground, processes, Math.ceil(jobs / 4));
      const tries: Drain[] = [];
      for (let run = 0; run < runs; run += 1)
        tries.push(await drainOnce(values.store, ground, processes, jobs));
      const drain = medianOf(tries);
      drains.push(drain);
      const costs = drains[0] ?? drain;
      const predicted = predict(costs, {
        processes,
        serverThreads: ground.serverThreads(processes),
        cores: availableParallelism(),
      });
      console.log(
        `${processes} processes: ${drain.jobsPerSecond.toFixed(0)} jobs/s ` +
          `(predicted ${predicted.jobsPerSecond.toFixed(0)}, limited by ${predicted.limitedBy}); ` +
          `server ${(drain.serverUtilisation * 100).toFixed(0)} % of a core, ${drain.serverUs.toFixed(1)} µs a job; ` +
          `worker ${drain.workerUs.toFixed(1)} µs a job, ${drain.rssMb.toFixed(0)} MB; ` +
          `${drain.wireBytes.toFixed(0)} bytes on the wire, ${drain.diskBytes.toFixed(0)} to disk`,
      );
    }
    if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(drains, null, 2)}\n`);
  } finally {
    await ground.close();
  }
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(error.message);
  process.exitCode = 2;
}
