import assert from "node:assert/strict";
import type { JobState } from "../../job.ts";
import type { Outcome } from "../../state.ts";
import type { ClaimedJob } from "../../store/claims.ts";
import type { EnqueueResult, NewJob, StoredJob } from "../../store/jobs.ts";
import type { Notice } from "../../store/notices.ts";
import type { Capabilities } from "../../store/opening.ts";
import type { TrailEntry } from "../../store/questions.ts";
import type { Store } from "../../store/store.ts";
import { Claimer } from "./claimer.ts";
import type { ConformanceHarness } from "./harness.ts";

/** One test of the suite. It runs in a namespace of its own. */
export type ConformanceTest = (
  title: string,
  run: (scene: Scene) => Promise<void>,
  needs?: { readonly capability: keyof Capabilities; readonly because: string },
) => void;

export const second = 1_000;
export const minute = 60 * second;
export const hour = 60 * minute;

/** A plain job, due now. */
export function newJob(id: string, changes: Partial<NewJob> = {}): NewJob {
  return {
    id,
    name: "work",
    queue: "default",
    delivery: "at-least-once",
    input: '{"n":1}',
    priority: 0,
    tags: [],
    runAt: null,
    delayMs: 0,
    expireInMs: null,
    attempts: 5,
    maxCrashes: 3,
    after: [],
    afterFailure: "cancel",
    unique: null,
    debounce: null,
    concurrencyKey: null,
    rateKey: null,
    retention: null,
    relayed: false,
    slot: 0,
    schedule: null,
    fireAt: null,
    ...changes,
  };
}

export const succeed: Outcome = { kind: "succeed", result: null };
export const die: Outcome = { kind: "die", reason: "no use", error: '{"name":"Error","message":"broken"}' };
export const lose: Outcome = { kind: "lose", reason: "nobody knows" };

export function retry(delayMs: number, error = '{"name":"Error","message":"again"}'): Outcome {
  return { kind: "retry", delayMs, error };
}

/** Two instants are the same but for the time that a flowing clock needs for a few calls. */
export function assertAbout(actual: Date | null, expected: Date, what = "instant"): void {
  assert(actual !== null, `expected ${what} to be about ${expected.toISOString()}, got null`);
  const offMs = Math.abs(actual.getTime() - expected.getTime());
  assert(
    offMs < 20 * second,
    `expected ${what} to be about ${expected.toISOString()}, got ${actual.toISOString()}`,
  );
}

export function later(instant: Date, ms: number): Date {
  return new Date(instant.getTime() + ms);
}

/** A namespace of its own, and short words for what most tests do in it. */
export class Scene {
  readonly store: Store;
  readonly namespace: string;
  readonly #harness: ConformanceHarness;
  readonly #opened: Store[];

  constructor(harness: ConformanceHarness, namespace: string, store: Store) {
    this.#harness = harness;
    this.namespace = namespace;
    this.store = store;
    this.#opened = [store];
  }

  advance(ms: number): Promise<void> {
    return this.#harness.advance(ms);
  }

  /** Another handle on the same namespace, as another process has it. */
  open(): Promise<Store> {
    return this.openIn(this.namespace);
  }

  /** A handle on another namespace of the same store. */
  openOther(): Promise<Store> {
    return this.openIn(`${this.namespace}-other`);
  }

  /** A handle on any namespace. */
  async openIn(namespace: string): Promise<Store> {
    const store = await this.#harness.open(namespace);
    this.#opened.push(store);
    return store;
  }

  /** Closes one handle before the end. */
  async shut(store: Store): Promise<void> {
    this.#opened.splice(this.#opened.indexOf(store), 1);
    await store.close();
  }

  async close(): Promise<void> {
    for (const store of this.#opened) await store.close();
  }

  async now(): Promise<Date> {
    return (await this.store.health()).now;
  }

  add(...jobs: NewJob[]): Promise<EnqueueResult[]> {
    return this.store.enqueue({ jobs });
  }

  async job(id: string): Promise<StoredJob> {
    const [job] = await this.store.get({ ids: [id] });
    assert(job, `the job ${id} is not there`);
    return job;
  }

  async stateOf(id: string): Promise<JobState | null> {
    const [job] = await this.store.get({ ids: [id] });
    return job?.state ?? null;
  }

  async states(...ids: string[]): Promise<(JobState | null)[]> {
    return (await this.store.get({ ids })).map((job) => job?.state ?? null);
  }

  trail(id: string): Promise<TrailEntry[]> {
    return this.store.trail({ id });
  }

  claimer(id = "node-1", store: Store = this.store): Claimer {
    return new Claimer(store, id);
  }

  /** Enqueues a job, claims it (and nothing else may be due) and ends it with the outcome. */
  async run(job: NewJob, outcome: Outcome, claimer = this.claimer(`for ${job.id}`)): Promise<ClaimedJob> {
    await this.add(job);
    const claimed = await claimer.one();
    assert.equal(claimed.id, job.id);
    assert.equal((await claimer.finish(claimed, outcome)).outcome, "written");
    return claimed;
  }

  async cancel(id: string, reason: string | null = null): Promise<string | undefined> {
    return (await this.store.cancel({ select: { ids: [id] }, reason })).results[0]?.outcome;
  }

  async redrive(id: string, reason: string | null = null): Promise<string | undefined> {
    return (await this.store.redrive({ select: { ids: [id] }, reason })).results[0]?.outcome;
  }

  async reapAll(): Promise<string[]> {
    return (await this.store.reap({ limit: 1_000 })).reaped.map(({ id }) => id);
  }

  /** Gathers notices until the condition holds, with a deadline in real time: notices may be late. */
  async noticesUntil(
    act: () => Promise<unknown>,
    enough: (notices: readonly Notice[]) => boolean,
  ): Promise<Notice[]> {
    const notices: Notice[] = [];
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const stop = await this.store.subscribe((notice) => {
      notices.push(notice);
      if (enough(notices)) resolve();
    });
    const deadline = setTimeout(
      () => reject(new Error(`no such notice within 10 s, only ${JSON.stringify(notices)}`)),
      10 * second,
    );
    try {
      await act();
      await promise;
      return notices;
    } finally {
      clearTimeout(deadline);
      await stop();
    }
  }
}
