import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEscapement, defineJob, type Escapement } from "../../../src/index.ts";
import { silentLogger } from "../../../src/log.ts";
import { Audit } from "./audit.ts";
import { type BrokerName, brokers } from "./broker.ts";
import { startEffects } from "./effects.ts";
import type { NodeWord, TakeoverPlan } from "./node.ts";

export interface TakeoverOptions {
  readonly tasks: number;
  readonly killAfter: number;
  readonly store: string;
  readonly to: BrokerName;
  readonly broker: string;
  readonly leaseMs: number;
  readonly inFlight: number;
  /** Whether each task is also run through an inbox, which takes far longer than firing it. */
  readonly withEffects: boolean;
  progress(line: string): void;
}

export interface TakeoverReport {
  readonly tasks: number;
  readonly lost: number;
  readonly delivered: number;
  /** Copies beyond the first of each task. */
  readonly duplicates: number;
  readonly inFlightBound: number;
  /** Partitions whose lease ran out on a living relay; each may cost its part of the bound once more. */
  readonly partitionsLost: number;
  /** How many arrivals before the kill the first copy of the oldest of them had come: only the tail may come again. */
  readonly tail: number;
  readonly deliveredAtKill: number;
  /** From the kill to the first publish of the replacement. */
  readonly takeoverMs: number;
  readonly leaseMs: number;
  readonly enqueueMs: number;
  /** From the start of the first relay to the last delivery. */
  readonly drainMs: number;
  readonly perSecond: number;
  readonly succeeded: number;
  /** Null when they were not asked for. */
  readonly effects: number | null;
  readonly tasksWithEffect: number | null;
  readonly effectsMs: number | null;
}

/** Of a namespace: a relay that holds all of them has a part of what may be in flight on each. */
const defaultPartitions = 16;
const windowMs = 5 * 60_000;
/** Nothing more comes once nothing has for so long. */
const quietMs = 3_000;
/** How long nothing may move. */
const patienceMs = 2 * 60_000;

/** Enqueues tasks, lets a relay fire, kills it, lets another take over, and reads at the consumer's side what came of it. */
export async function takeover(options: TakeoverOptions): Promise<TakeoverReport> {
  const { tasks, to, broker, progress } = options;
  const topic = `takeover-${randomUUID()}`;
  const plan: TakeoverPlan = { ...options, namespace: topic, topic };
  const folder = mkdtempSync(join(tmpdir(), "escapement-takeover-"));
  await brokers[to].prepare(broker, topic);
  const audit = new Audit(brokers[to].read(broker, topic), tasks);
  const app = createEscapement({ store: options.store, namespace: topic, log: silentLogger });
  const children: ChildProcess[] = [];
  try {
    const enqueueMs = await timed(() => enqueue(app, tasks, progress));
    audit.start();
    const startedAtMs = Date.now();
    const first = startNode(plan, children);
    const fired = () => audit.arrived;
    const tell = () => progress(`fired ${audit.unique} of ${tasks}, ${audit.duplicates} again`);
    await until(() => audit.unique >= options.killAfter, fired, tell);
    first.child.kill("SIGKILL");
    const killedAtMs = Date.now();
    const [deliveredAtKill, arrivedAtKill] = [audit.unique, audit.arrived];
    progress(`killed after ${deliveredAtKill}; a replacement starts`);
    const second = startNode(plan, children);
    await until(() => audit.unique >= tasks && audit.quietMs >= quietMs, fired, tell);
    const drainMs = Date.now() - quietMs - startedAtMs;
    const firstPublishAtMs = await second.firstPublishAtMs;
    let left = tasks;
    const settled = async (): Promise<boolean> => {
      left = await app.count({ states: ["waiting", "active"] });
      return left === 0;
    };
    await until(settled, () => left);
    return {
      tasks,
      lost: tasks - audit.unique,
      delivered: audit.arrived,
      duplicates: audit.duplicates,
      inFlightBound: options.inFlight,
      partitionsLost: first.lost + second.lost,
      tail: audit.tailBefore(arrivedAtKill),
      deliveredAtKill,
      takeoverMs: firstPublishAtMs - killedAtMs,
      leaseMs: options.leaseMs,
      enqueueMs,
      drainMs,
      perSecond: Math.round((tasks / drainMs) * 1_000),
      succeeded: await app.count({ states: ["succeeded"] }),
      ...(await countEffects(options, topic, folder)),
    };
  } finally {
    for (const child of children) child.kill("SIGKILL");
    await audit.stop();
    await app.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What must hold of every takeover, whatever its size. */
export function checkTakeover(report: TakeoverReport): void {
  assert.equal(report.lost, 0, "nothing is lost");
  assert.equal(report.succeeded, report.tasks, "every task is in the history");
  const again = report.inFlightBound * (1 + report.partitionsLost / defaultPartitions);
  assert.ok(report.duplicates <= again, `${report.duplicates} came again, and at most ${again} may`);
  if (report.effects !== null)
    assert.deepEqual([report.effects, report.tasksWithEffect], [report.tasks, report.tasks]);
}

async function enqueue(app: Escapement, tasks: number, progress: (line: string) => void): Promise<void> {
  // By name and address it is the relay's; this process never publishes.
  const route = {
    transport: { kind: "nowhere", address: "", open: () => assert.fail() },
    destination: "-",
  };
  const job = defineJob<number>({ name: "task", route: { ...route, dispatchTimeoutMs: 300_000 } });
  const startAtMs = Date.now() - windowMs;
  const chunk = 20_000;
  for (let start = 0; start < tasks; start += chunk) {
    const many = Math.min(chunk, tasks - start);
    const items = Array.from({ length: many }, (_, n) => ({
      input: start + n,
      id: `task-${start + n}`,
      runAt: new Date(startAtMs + ((start + n) / tasks) * windowMs),
    }));
    await app.enqueueMany(job, items);
    progress(`enqueued ${start + many} of ${tasks}`);
  }
}

function startNode(plan: TakeoverPlan, children: ChildProcess[]) {
  const child = fork(join(import.meta.dirname, "node.ts"), [JSON.stringify(plan)], { stdio: "inherit" });
  children.push(child);
  const first = Promise.withResolvers<number>();
  const node = { child, firstPublishAtMs: first.promise, lost: 0 };
  child.on("message", (word: NodeWord) => {
    if (word.kind === "lost") node.lost += 1;
    else first.resolve(word.atMs);
  });
  return node;
}

/** Runs every delivered task through an inbox, once all are there: it takes the machine longer than firing them did. */
async function countEffects(
  { to, broker, tasks, withEffects, progress }: TakeoverOptions,
  topic: string,
  folder: string,
): Promise<Pick<TakeoverReport, "effects" | "tasksWithEffect" | "effectsMs">> {
  if (!withEffects) return { effects: null, tasksWithEffect: null, effectsMs: null };
  const source = brokers[to].source(broker, topic, "effects");
  const effects = await startEffects(source, join(folder, "effects.db"));
  try {
    const effectsMs = await timed(() =>
      until(
        () => effects.handled >= tasks && effects.quietMs >= quietMs,
        () => effects.handled,
        () => progress(`${effects.handled} effects`),
      ),
    );
    return { ...effects.count(), effectsMs: effectsMs - quietMs };
  } finally {
    await effects.stop();
  }
}

async function timed(work: () => Promise<void>): Promise<number> {
  const since = performance.now();
  await work();
  return Math.round(performance.now() - since);
}

/** Waits as long as something moves. */
async function until(
  isTrue: () => boolean | Promise<boolean>,
  moves: () => number,
  tell: () => void = () => {},
): Promise<void> {
  let [seen, seenAt, toldAt] = [moves(), performance.now(), performance.now()];
  while (!(await isTrue())) {
    const now = performance.now();
    if (moves() !== seen) [seen, seenAt] = [moves(), now];
    if (now - seenAt > patienceMs) throw new Error(`nothing came of it in ${patienceMs / 60_000} minutes`);
    if (now - toldAt > 2_000) {
      tell();
      toldAt = now;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
