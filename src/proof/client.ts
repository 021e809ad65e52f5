import type { Escapement } from "../app/escapement.ts";
import { sleep, systemClock } from "../clock.ts";
import type { JobDefinition } from "../definition.ts";
import { type Delivery, deliveries } from "../job.ts";
import type { Script, ScriptResult } from "./definitions.ts";
import type { CancelCall, Operation } from "./history.ts";
import type { PlannedJob } from "./workload.ts";

/** After this an answer counts as lost. */
const answerWithinMs = 15_000;
/** How many jobs one call enqueues at the most. */
const batch = 100;
/** How many calls may be under way at once. */
const mostPending = 32;
const lookEveryMs = 10;

type Jobs = Readonly<Record<Delivery, JobDefinition<Script, ScriptResult>>>;

/** Plays the workload, and writes down what it asked for and what it was answered. */
export class VerifyClient {
  readonly operations: Operation[] = [];
  readonly #app: Escapement;
  readonly #jobs: Jobs;
  readonly #pending = new Set<Promise<void>>();
  enqueued = 0;

  constructor(app: Escapement, jobs: Jobs) {
    this.#app = app;
    this.#jobs = jobs;
  }

  /** Enqueues and cancels what is planned, at its time. */
  async play(planned: readonly PlannedJob[]): Promise<void> {
    const beganAtMs = systemClock.monotonic();
    const cancels: { readonly id: string; readonly atMs: number }[] = [];
    let next = 0;
    while (next < planned.length || cancels.length > 0) {
      const nowMs = systemClock.monotonic() - beganAtMs;
      const due: PlannedJob[] = [];
      for (let job = planned[next]; job !== undefined && job.atMs <= nowMs; job = planned[++next])
        due.push(job);
      for (const job of due) {
        if (job.cancelAfterMs !== null) cancels.push({ id: job.id, atMs: nowMs + job.cancelAfterMs });
      }
      for (const chunk of chunks(due)) await this.#add(this.#enqueue(chunk));
      const ripe = cancels.filter(({ atMs }) => atMs <= nowMs);
      for (const one of ripe) {
        cancels.splice(cancels.indexOf(one), 1);
        await this.#add(this.#cancel(one.id));
      }
      await sleep(systemClock, lookEveryMs);
    }
    await Promise.all(this.#pending);
  }

  async schedule(key: string, everyMs: number, delivery: Delivery): Promise<void> {
    const rule = { every: everyMs, misfire: "all", catchUp: 10_000 } as const;
    const script = { ms: 0, failures: 0 };
    const call = await timed(() =>
      this.#app.schedule(key, rule, this.#jobs[delivery], script, { priority: 10 }),
    );
    this.operations.push({ kind: "schedule", schedule: key, delivery, everyMs, ...call.times });
  }

  async unschedule(key: string): Promise<void> {
    const call = await timed(() => this.#app.unschedule(key));
    this.operations.push({ kind: "unschedule", schedule: key, ...call.times });
  }

  async #add(call: Promise<void>): Promise<void> {
    const pending = call.finally(() => this.#pending.delete(pending));
    this.#pending.add(pending);
    if (this.#pending.size >= mostPending) await Promise.race(this.#pending);
  }

  async #enqueue(chunk: readonly PlannedJob[]): Promise<void> {
    const [first] = chunk;
    if (first === undefined) return;
    const items = chunk.map(({ id, script, delayMs, lateMs }) => ({
      id,
      input: script,
      ...(lateMs === 0 ? { delay: delayMs } : { runAt: new Date(Date.now() - lateMs) }),
    }));
    const { times } = await timed(() => this.#app.enqueueMany(this.#jobs[first.delivery], items));
    this.enqueued += chunk.length;
    for (const { id, delivery, delayMs, script } of chunk) {
      const { failures } = script;
      this.operations.push({ kind: "enqueue", job: id, delivery, delayMs, failures, ...times });
    }
  }

  async #cancel(id: string): Promise<void> {
    const { times, value } = await timed(() => this.#app.cancel(id));
    const [answer = null] = Object.keys(value ?? {}) as NonNullable<CancelCall["answer"]>[];
    this.operations.push({ kind: "cancel", job: id, answer, ...times });
  }
}

type Times = Pick<Operation, "invokedAtMs" | "endedAtMs" | "outcome">;

/** Runs a call; whatever goes wrong with it leaves open whether it happened. */
async function timed<T>(
  call: () => Promise<T>,
): Promise<{ readonly times: Times; readonly value: T | null }> {
  const invokedAtMs = systemClock.monotonic();
  const ended = new AbortController();
  const late = sleep(systemClock, answerWithinMs, ended.signal).then(() => null);
  const answer = await Promise.race([
    call().then(
      (value) => ({ value }),
      () => null,
    ),
    late,
  ]);
  ended.abort();
  const outcome = answer === null ? "info" : "ok";
  return {
    times: { invokedAtMs, endedAtMs: systemClock.monotonic(), outcome },
    value: answer?.value ?? null,
  };
}

/** Jobs of one kind go together. */
function chunks(jobs: readonly PlannedJob[]): PlannedJob[][] {
  return deliveries.flatMap((delivery) => {
    const own = jobs.filter((job) => job.delivery === delivery);
    return Array.from({ length: Math.ceil(own.length / batch) }, (_, index) =>
      own.slice(index * batch, (index + 1) * batch),
    );
  });
}
