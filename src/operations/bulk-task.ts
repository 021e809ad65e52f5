import { setImmediate as turn } from "node:timers/promises";
import type { ChangeVerb, Client, JobChanges } from "../client/client.ts";
import { checkHasCondition } from "../client/filter.ts";
import { isTransient } from "../errors.ts";
import { type JobState, jobStates } from "../job.ts";
import type { JobSketch } from "../store/questions.ts";
import { type JobsFilter, scanPage } from "./find-jobs.ts";
import { LookAhead } from "./look-ahead.ts";

/** What a task does to each job: a verb of the store, or an edit. */
export type BulkVerb = ChangeVerb | "run-now" | "priority";

export interface BulkParts {
  readonly client: Client;
  readonly verb: BulkVerb;
  /** For `priority`. */
  readonly priority?: number;
  readonly filter: JobsFilter;
  /** For the trail of each job. */
  readonly reason: string;
  /** Only counts. */
  readonly dryRun: boolean;
  readonly signal?: AbortSignal;
  /** Wraps the work, to write down that it was done. */
  around?(run: () => Promise<BulkProgress>): Promise<BulkProgress>;
}

/** Progress of a task. */
export interface BulkProgress {
  /** How many jobs it has looked at. */
  readonly looked: number;
  /** How many of those match. */
  readonly matched: number;
  /** How many met which outcome. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** How many no longer matched when their turn came: others were faster. */
  readonly changed: number;
  readonly state: "running" | "done" | "stopped" | "failed";
}

/** What each verb can change. */
const statesOf: Readonly<Record<BulkVerb, readonly JobState[]>> = {
  cancel: ["blocked", "waiting", "active"],
  redrive: ["dead", "lost"],
  remove: ["succeeded", "dead", "lost", "cancelled"],
  "run-now": ["waiting"],
  priority: ["waiting", "blocked"],
};

/** These change jobs that have ended. */
const endVerbs: readonly BulkVerb[] = ["redrive", "remove"];

const pageSize = 200;
const lookAtPerPage = 5_000;
const maxAttempts = 6;
/** How many edits are in flight at once: each is a separate trip. */
const editsAtOnce = 8;

/**
 * Does something to all jobs that match, in pages, oldest first. It starts at once, and goes over what was there when it started: each job
 * once, whatever happens to it meanwhile. Iterating over it gives its progress.
 */
export class BulkTask implements AsyncIterable<BulkProgress> {
  readonly #parts: BulkParts;
  readonly #stopping = new AbortController();
  #progress: BulkProgress = { looked: 0, matched: 0, outcomes: {}, changed: 0, state: "running" };
  #changed = Promise.withResolvers<void>();
  readonly #done: Promise<BulkProgress>;

  constructor(parts: BulkParts) {
    checkHasCondition(parts.filter);
    this.#parts = parts;
    const { around = (run) => run() } = parts;
    this.#done = around(() => this.#run()).catch((error: unknown) => {
      this.#move({ state: "failed" });
      throw error;
    });
    // A caller that awaits it gets the failure; no one has to.
    this.#done.catch(() => {});
  }

  get progress(): BulkProgress {
    return this.#progress;
  }

  /** Resolves when it has ended or was stopped; rejects when the store failed. */
  result(): Promise<BulkProgress> {
    return this.#done;
  }

  /** Stops it after the current page. What it has done stays done. */
  stop(): void {
    this.#stopping.abort();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<BulkProgress, void> {
    for (let shown: BulkProgress | null = null; shown === null || shown.state === "running"; ) {
      // A slow consumer gets several steps as one.
      if (this.#progress === shown) await this.#changed.promise;
      shown = this.#progress;
      yield shown;
    }
    await this.#done;
  }

  async #run(): Promise<BulkProgress> {
    const { client, signal } = this.#parts;
    const filter = await this.#bounded();
    let cursor: string | null = null;
    const ahead = new LookAhead(pageSize);
    do {
      // A store in this process answers without letting the loop turn, and Ctrl-C would not be heard.
      await turn();
      if (this.#stopping.signal.aborted || signal?.aborted === true) return this.#move({ state: "stopped" });
      const page = await scanPage(client, filter, {
        order: "oldest",
        limit: pageSize,
        lookAt: ahead.within(lookAtPerPage),
        cursor,
      });
      ahead.learn(pageSize, page.jobs.length);
      const { looked, matched } = this.#progress;
      this.#move({ looked: looked + page.looked, matched: matched + page.jobs.length });
      if (!this.#parts.dryRun && page.jobs.length > 0) await this.#act(filter, page.jobs);
      cursor = page.cursor;
    } while (cursor !== null);
    return this.#move({ state: "done" });
  }

  /** Jobs that match only after the start are left out, or a task could run forever. */
  async #bounded(): Promise<JobsFilter> {
    const { client, filter, verb } = this.#parts;
    const { now } = await client.health();
    const start = new Date(now.getTime() + 1);
    const before = (given: Date | undefined): Date => (given !== undefined && given < start ? given : start);
    const states = filter.states ?? jobStates;
    return {
      ...filter,
      states: states.filter((state) => statesOf[verb].includes(state)),
      enqueuedBefore: before(filter.enqueuedBefore),
      ...(endVerbs.includes(verb) ? { endedBefore: before(filter.endedBefore) } : {}),
      // What is due already must not be sent to the end of the line.
      ...(verb === "run-now" ? { runAfter: latest(filter.runAfter, start) } : {}),
    };
  }

  /**
   * A call whose reply was lost may have changed them: the jobs are looked at again, and only those that still match, and were not redriven
   * since, are tried again.
   */
  async #act(filter: JobsFilter, found: readonly JobSketch[]): Promise<void> {
    const { client, verb, reason } = this.#parts;
    if (verb === "run-now" || verb === "priority") return this.#edit(verb, found);
    const { endedAfter: _a, endedBefore: _b, error: _e, text: _t, fingerprint: _f, ...base } = filter;
    const before = new Map(found.map(({ id, redrives }) => [id, redrives]));
    let ids = [...before.keys()];
    for (let attempt = 1; ids.length > 0; attempt += 1) {
      try {
        const results = await client.changeOnce(verb, { ...base, ids }, reason);
        const outcomes: Record<string, number> = { ...this.#progress.outcomes };
        for (const { outcome } of results) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
        this.#move({ outcomes, changed: this.#progress.changed + ids.length - results.length });
        return;
      } catch (error) {
        if (!isTransient(error) || attempt === maxAttempts) throw error;
        const page = { order: "oldest", limit: ids.length, lookAt: ids.length, cursor: null } as const;
        const again = await scanPage(client, { ...filter, ids }, page);
        const left = again.jobs.filter(({ id, redrives }) => before.get(id) === redrives);
        this.#move({ changed: this.#progress.changed + ids.length - left.length });
        ids = left.map(({ id }) => id);
      }
    }
  }

  /** One edit may be repeated: it sets the same thing again, and a job that has started since refuses it. */
  async #edit(verb: "run-now" | "priority", found: readonly JobSketch[]): Promise<void> {
    const { client, priority = 0, reason } = this.#parts;
    const changes: JobChanges = verb === "run-now" ? { delay: 0 } : { priority };
    const left = found.map(({ id }) => id);
    const updated: string[] = [];
    const work = async (): Promise<void> => {
      for (let id = left.shift(); id !== undefined; id = left.shift()) {
        const { outcome } = await client.update(id, changes);
        if (outcome === "updated") updated.push(id);
        const { outcomes } = this.#progress;
        this.#move({ outcomes: { ...outcomes, [outcome]: (outcomes[outcome] ?? 0) + 1 } });
      }
    };
    await Promise.all(Array.from({ length: editsAtOnce }, work));
    const what = verb === "run-now" ? "made due" : `priority set to ${priority}`;
    // The audit log has it in any case.
    await client.note({ ids: updated, text: `${what} ${reason}` }).catch(() => {});
  }

  #move(change: Partial<BulkProgress>): BulkProgress {
    this.#progress = { ...this.#progress, ...change };
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
    return this.#progress;
  }
}

function latest(given: Date | undefined, start: Date): Date {
  return given !== undefined && given > start ? given : start;
}
