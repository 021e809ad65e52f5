import type { JobFacts, JobOutline } from "../job.ts";
import { canary } from "../relay/canary.ts";
import type { JobFilter } from "../store/questions.ts";
import type { Escapement } from "./escapement.ts";

/** What a tick has done, and what it had to leave. */
export interface Ticked {
  readonly succeeded: number;
  readonly failed: number;
  readonly reaped: number;
  readonly left: Left;
}

/** Jobs that were due when the tick began and still wait; the three reasons need not account for all of them. */
export interface Left {
  readonly count: number;
  /** Their publish did not get through, or has no answer yet. */
  readonly unpublished: number;
  /** Their queue is paused. */
  readonly paused: number;
  /** No definition of this process can run or publish them. */
  readonly unhandled: number;
}

/** How much longer than a poll, which finds whatever is due, nothing may happen before there is nothing left to do. */
const graceMs = 500;
const lookEveryMs = 50;
const shortestStopMs = 30_000;

/** Runs what is due now, and stops the app: see {@link Escapement.tick}. */
export async function tick(app: Escapement): Promise<Ticked> {
  const { now } = await app.health();
  const watch = new TickWatch(app, now);
  await app.start({ reapAfter: 0 });
  watch.started();
  while (!(await watch.isOver())) await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
  const left = await watch.left();
  // What has begun may finish, even if it belongs to the next tick: an at-most-once job that is interrupted has no second attempt.
  await app.stop({ timeout: watch.hasOthersRunning ? "1d" : watch.longestAnswerMs });
  return { ...watch.ran, left: left() };
}

/**
 * Knows when a tick is over. Its work is what was due when it began: what becomes due later is for the next one, since an every-second
 * schedule would keep this one forever.
 */
class TickWatch {
  readonly ran = { succeeded: 0, failed: 0, reaped: 0 };
  readonly #app: Escapement;
  readonly #began: Date;
  /** Due when it began, for a filter. */
  readonly #due: { readonly runBefore: Date };
  readonly #served: ReadonlySet<string>;
  readonly #routed: readonly string[];
  readonly #patienceMs: number;
  /** For how long a broker may be silent. */
  readonly longestAnswerMs: number;
  #beganAtMs = performance.now();
  #lastAtMs = this.#beganAtMs;
  /** How many of this tick's jobs were started so far. */
  #starts = 0;
  /** Claims of this tick's jobs. What a relay publishes ends without having started here. */
  readonly #running = new Set<string>();
  readonly #othersRunning = new Set<string>();
  /** Whose publish did not get through; the rollback has moved their time. */
  readonly #unpublished = new Set<string>();
  /** What was still to be planned when that was looked at last. */
  #toPlan = "";

  constructor(app: Escapement, began: Date) {
    this.#app = app;
    this.#began = began;
    this.#due = { runBefore: new Date(began.getTime() + 1) };
    const served = app.definitions.filter(({ run, route }) => run !== null || route !== null);
    this.#served = new Set(served.map(({ name }) => name));
    const routes = served.flatMap(({ name, route }) => (route === null ? [] : { name, ...route }));
    this.#routed = routes.map(({ name }) => name);
    this.#patienceMs = app.settings.pollMs + graceMs;
    const timeoutsMs = routes.map(({ dispatchTimeoutMs }) => dispatchTimeoutMs);
    this.longestAnswerMs = Math.max(shortestStopMs, ...timeoutsMs);
    this.#listen();
  }

  /** The roles run from now on; how long it took to start them says nothing about what is due. */
  started(): void {
    this.#beganAtMs = performance.now();
    this.#happened();
  }

  /** Nothing of its work is left, or nothing of it moves. */
  async isOver(): Promise<boolean> {
    if (this.#running.size > 0 || performance.now() - this.#beganAtMs <= this.#patienceMs) return false;
    // stop() waits beyond that.
    const answerMs = (await this.#countPublishing()) > 0 ? this.#app.settings.leaseMs : 0;
    if (!this.#isQuiet(answerMs) && (await this.#hasDue())) return false;
    const toPlan = await this.#readToPlan();
    if (toPlan !== this.#toPlan) this.#happened();
    this.#toPlan = toPlan;
    return toPlan === "" || this.#isQuiet();
  }

  /** Whether handlers of jobs run that are not its own. */
  get hasOthersRunning(): boolean {
    return this.#othersRunning.size > 0;
  }

  /** What is left, reported once the app has stopped: until then publishes may be answered. */
  async left(): Promise<() => Left> {
    const startsBefore = this.#starts;
    const [rows, paused] = await Promise.all([
      this.#app.countBy(["queue", "name"], { ...this.#due, states: ["waiting"] }),
      this.#pausedQueues(),
    ]);
    const underway =
      this.#routed.length === 0 ? [] : (await this.#app.list(this.#underway, { limit: 10_000 })).jobs;
    for (const { id } of underway) this.#unpublished.add(id);
    const found = { paused: 0, unhandled: 0 };
    let count = 0;
    for (const { name = "", queue = "", count: more } of rows) {
      if (name === canary.name) continue;
      count += more;
      if (paused.has(queue)) found.paused += more;
      else if (!this.#served.has(name)) found.unhandled += more;
    }
    // Whose publish did not get through is due later, or active: none of them was counted above.
    const unpublished = this.#unpublished;
    return () => {
      // What was claimed before the stop took hold is not left.
      const waiting = Math.max(0, count - (this.#starts - startsBefore));
      return { count: waiting + unpublished.size, unpublished: unpublished.size, ...found };
    };
  }

  #listen(): void {
    const app = this.#app;
    const ended =
      (what: "succeeded" | "failed" | null) =>
      ({ job }: { readonly job: JobFacts }): void => {
        if (job.name === canary.name) return;
        this.#running.delete(claimOf(job));
        this.#othersRunning.delete(claimOf(job));
        this.#unpublished.delete(job.id);
        if (what !== null) this.ran[what] += 1;
        if (this.#isOwn(job)) this.#happened();
      };
    app.on("started", ({ job }) => {
      const isOwn = this.#isOwn(job);
      (isOwn ? this.#running : this.#othersRunning).add(claimOf(job));
      if (!isOwn) return;
      this.#starts += 1;
      this.#happened();
    });
    app.on("succeeded", ended("succeeded")).on("failed", ended("failed")).on("dead", ended("failed"));
    app.on("lost", ended("failed")).on("crashed", ended("failed"));
    app.on("cancelled", ended(null)).on("snoozed", ended(null)).on("stale", ended(null));
    app.on("dispatchRetry", ({ job, phase }) => {
      if (phase === "publish" && this.#isDue(job)) this.#unpublished.add(job.id);
    });
    app.on("reaped", ({ id, name, state }) => {
      this.ran.reaped += 1;
      this.#unpublished.delete(id);
      // It will run again; one that has ended is not work.
      if (state === "waiting" && this.#served.has(name)) this.#happened();
    });
  }

  #happened(): void {
    this.#lastAtMs = performance.now();
  }

  #isQuiet(moreMs = 0): boolean {
    return performance.now() - this.#lastAtMs > this.#patienceMs + moreMs;
  }

  /** A job that was enqueued since is not its own, also if it was given a time of the past; an occurrence is enqueued when it is planned. */
  #isOwn(job: JobFacts): boolean {
    return this.#isDue(job) && (job.enqueuedAt <= this.#began || job.schedule !== null);
  }

  #isDue({ name, runAt }: JobOutline): boolean {
    return name !== canary.name && runAt <= this.#began;
  }

  /** How many brokers still have to answer for: a slow one is not a standstill. */
  async #countPublishing(): Promise<number> {
    if (this.#routed.length === 0) return 0;
    return this.#app.count(this.#underway);
  }

  get #underway(): JobFilter {
    return { ...this.#due, names: this.#routed, states: ["active"] };
  }

  /** Whether jobs are left that could be run or published here; what waits in a paused queue could not. */
  async #hasDue(): Promise<boolean> {
    const names = [...this.#served];
    const [rows, paused] = await Promise.all([
      this.#app.countBy(["queue"], { ...this.#due, names, states: ["waiting", "active"] }),
      this.#pausedQueues(),
    ]);
    return rows.some(({ queue = "", count }) => count > 0 && !paused.has(queue));
  }

  async #pausedQueues(): Promise<ReadonlySet<string>> {
    const queues = await this.#app.queues();
    return new Set(queues.flatMap(({ queue, paused }) => (paused ? queue : [])));
  }

  /** The schedules that have something due which is not planned yet, and the state of each; empty when there are none. */
  async #readToPlan(): Promise<string> {
    const schedules = await this.#app.schedules();
    return schedules
      .filter(({ paused, nextAt }) => !paused && nextAt !== null && nextAt <= this.#began)
      .map(({ key, nextAt }) => `${key}@${nextAt?.toISOString()}`)
      .join(" ");
  }
}

function claimOf({ id, token }: JobOutline): string {
  return `${id} ${token}`;
}
