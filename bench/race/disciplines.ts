import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { AuditFailure, within } from "../audit.ts";
import { percentile } from "../statistics.ts";
import type { Contestant, Ground, Load, Session } from "./contestant.ts";
import { serverMs } from "./processor-time.ts";

/** What one process is asked to do. */
export interface Task {
  readonly contestant: string;
  readonly discipline: "drain" | "bulk" | "singles" | "pickup" | "sender";
  readonly concurrency: number;
  readonly jobs: number;
  readonly ground: Ground;
  /** The process that started the servers. */
  readonly race: number;
}

/** One run: the value that counts, and what explains it. */
export interface Measurement {
  readonly value: number;
  readonly [detail: string]: number;
}

const deadlineMs = 90_000;
/** Jobs before the clock starts: code is compiled, connections are open, every prefetch is full. */
const runUp = 2_000;

const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6;
const loads = (count: number): Load[] => Array.from({ length: count }, (_, n) => ({ n, sentAtMs: 0 }));

/** Counts how often each job ran. */
class Runs {
  readonly #counts: Uint8Array;
  count = 0;

  constructor(jobs: number) {
    this.#counts = new Uint8Array(jobs);
  }

  add(n: number): void {
    this.#counts[n] = (this.#counts[n] ?? 0) + 1;
    this.count += 1;
  }

  check(): void {
    const lost = this.#counts.filter((count) => count === 0).length;
    const doubled = this.#counts.filter((count) => count > 1).length;
    if (lost + doubled > 0) throw new AuditFailure(`${lost} jobs never ran, ${doubled} ran more than once`);
  }
}

/**
 * How fast a full queue of jobs that do nothing is worked off. The queue is filled before the worker starts. The clock starts in the
 * handler of job 2,001 and stops when the store says that no job is left, so every completion is durable. Jobs that may have been in the process
 * when the clock started (those that ran, and the contestant's prefetch) do not count.
 */
async function drain(session: Session, contestant: Contestant, task: Task): Promise<Measurement> {
  const total = runUp + task.jobs;
  await session.addMany(loads(total));
  const runs = new Runs(total);
  const started = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  let firstAtMs = 0;
  let from = { ms: 0, worker: process.cpuUsage(), serverMs: 0 };
  const handler = ({ n }: Load): void => {
    if (runs.count === 0) firstAtMs = nowMs();
    runs.add(n);
    if (runs.count === runUp) {
      from = { serverMs: serverMs(task.race, process.pid), worker: process.cpuUsage(), ms: nowMs() };
      started.resolve();
    }
    if (runs.count === total) ended.resolve();
  };
  const startedAtMs = nowMs();
  await session.work(task.concurrency, handler);
  await within(deadlineMs, "the run-up", started.promise);
  await within(deadlineMs, "the drain", ended.promise);
  while ((await session.left()) > 0) await delay(1);
  const ms = nowMs() - from.ms;
  const { user, system } = process.cpuUsage(from.worker);
  const servers = serverMs(task.race, process.pid) - from.serverMs;
  runs.check();
  await checkKept(session, total);
  const counted = task.jobs - contestant.prefetch(task.concurrency);
  return {
    value: (counted / ms) * 1_000,
    ms,
    startMs: firstAtMs - startedAtMs,
    workerUs: (user + system) / task.jobs,
    serverUs: (servers * 1_000) / task.jobs,
    rssMb: process.memoryUsage.rss() / 1_048_576,
  };
}

async function checkKept(session: Session, expected: number): Promise<void> {
  const kept = await session.kept();
  if (kept !== null && kept !== expected)
    throw new AuditFailure(`expected ${expected} kept jobs, got ${kept}`);
}

/** How fast jobs come in by the bulk call; they are all there in the end. */
async function bulk(session: Session, task: Task): Promise<Measurement> {
  await session.addMany(loads(runUp));
  return timeAdds(session, task, runUp, () => session.addMany(loads(task.jobs)));
}

/** How fast jobs come in by single calls that are all made at once. */
async function singles(session: Session, task: Task): Promise<Measurement> {
  await Promise.all(loads(100).map((load) => session.addOne(load)));
  return timeAdds(session, task, 100, async () => {
    await Promise.all(loads(task.jobs).map((load) => session.addOne(load)));
  });
}

async function timeAdds(
  session: Session,
  task: Task,
  before: number,
  add: () => Promise<void>,
): Promise<Measurement> {
  const cpu = process.cpuUsage();
  const servers = serverMs(task.race, process.pid);
  const since = nowMs();
  await add();
  const ms = nowMs() - since;
  const { user, system } = process.cpuUsage(cpu);
  const serversMs = serverMs(task.race, process.pid) - servers;
  const left = await session.left();
  if (left !== before + task.jobs) throw new AuditFailure(`expected ${before + task.jobs} jobs, got ${left}`);
  return {
    value: (task.jobs / ms) * 1_000,
    ms,
    workerUs: (user + system) / task.jobs,
    serverUs: (serversMs * 1_000) / task.jobs,
  };
}

/** How long a job that another process adds waits for its handler on an idle system. */
async function pickup(session: Session, task: Task): Promise<Measurement> {
  const waits: number[] = [];
  let arrived = (): void => {};
  await session.work(task.concurrency, ({ n, sentAtMs }) => {
    const waited = nowMs() - sentAtMs;
    if (n >= 0) waits.push(waited);
    arrived();
  });
  const sender = fork(new URL(import.meta.resolve("./racer.ts")), [
    JSON.stringify({ ...task, discipline: "sender" }),
  ]);
  await within(deadlineMs, "the sender's start", once(sender, "message"));
  // The first few find connections and code cold.
  for (let n = -5; n < task.jobs; n += 1) {
    await delay(10 + Math.random() * 20);
    const arrival = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    sender.send(n);
    await within(deadlineMs, "a pick-up", arrival);
  }
  sender.disconnect();
  return { value: percentile(waits, 0.5), p99: percentile(waits, 0.99), max: Math.max(...waits) };
}

/** The other process of {@link pickup}. */
async function send(session: Session): Promise<void> {
  process.on("message", (n: number) => void session.addOne({ n, sentAtMs: nowMs() }));
  process.send?.("ready");
  await once(process, "disconnect");
}

export async function perform(contestant: Contestant, task: Task): Promise<Measurement | null> {
  const session = await contestant.open(task.ground, task.discipline !== "sender");
  try {
    switch (task.discipline) {
      case "drain":
        return await drain(session, contestant, task);
      case "bulk":
        return await bulk(session, task);
      case "singles":
        return await singles(session, task);
      case "pickup":
        return await pickup(session, task);
      case "sender":
        await send(session);
        return null;
    }
  } finally {
    await session.close();
  }
}
