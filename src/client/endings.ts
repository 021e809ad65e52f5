import { sleepAwake } from "../clock.ts";
import type { Job, JobState } from "../job.ts";
import { checkInteger, checkKnown } from "../options.ts";
import type { Runtime } from "../runtime.ts";
import { isTerminal } from "../state.ts";
import type { JobFilter, Notice, Store, StoredJob } from "../store.ts";
import { withRetries } from "../transient.ts";
import type { Connection } from "./connection.ts";
import { decodeJob } from "./decode.ts";
import { checkFilter } from "./filter.ts";
import type { WatchOptions } from "./watch.ts";

export interface SubscribeOptions extends WatchOptions {
  /**
   * How many of the newest ended jobs to look at when no notice told what has ended: on SQLite and MySQL, whose notices do not say what other
   * processes ended, and after notices were lost.
   *
   * @default 5_000
   */
  readonly lookAt?: number;
}

/** How often to look where notices say what ended, and where they do not. */
const listeningMs = 15_000;
const pollingMs = 1_000;
/** Hints that come in a row share a look. */
const restMs = 100;
/** Ends are told in no strict order: so far back is looked again. */
const overlapMs = 10_000;
const page = 1_000;
const ends: readonly JobState[] = ["succeeded", "dead", "lost", "cancelled"];

/** Tells of jobs that end from now on, wherever they ran, each end once. Resolves when it is known what "now" is: nothing after that is missed. */
export async function subscribeToEnds(
  connection: Connection,
  runtime: Runtime,
  filter: JobFilter,
  options: SubscribeOptions,
): Promise<AsyncGenerator<Job, void, undefined>> {
  checkKnown(options, ["signal", "lookAt"], "subscribe");
  checkFilter(filter);
  const lookAt = checkInteger(options.lookAt ?? 5_000, 1, 1_000_000, "lookAt");
  const { now: since } = await withRetries(runtime, async () => (await connection.store()).health());
  return follow({ connection, runtime, filter, lookAt, since, signal: options.signal ?? null });
}

interface Following {
  readonly connection: Connection;
  readonly runtime: Runtime;
  readonly filter: JobFilter;
  readonly lookAt: number;
  readonly since: Date;
  readonly signal: AbortSignal | null;
}

async function* follow(following: Following): AsyncGenerator<Job, void, undefined> {
  const { connection, runtime, signal } = following;
  const store = await connection.store();
  const look = new Look(store, following);
  const everyMs = store.capabilities.listen ? listeningMs : pollingMs;
  let wake = new AbortController();
  let named = new Set<string>();
  let isUnsure = true;
  const stop = (): void => wake.abort();
  const unsubscribe = await store.subscribe((notice: Notice) => {
    if (notice.kind !== "ended") return;
    if (notice.ids === null) isUnsure = true;
    for (const id of notice.ids ?? []) named.add(id);
    wake.abort();
  });
  signal?.addEventListener("abort", stop);
  let lookedAtMs = runtime.clock.monotonic();
  try {
    while (!signal?.aborted) {
      const [woken, ids, isAll] = [wake.signal, [...named], isUnsure];
      named = new Set();
      isUnsure = false;
      if (isAll) lookedAtMs = runtime.clock.monotonic();
      const found = await withRetries(runtime, async () => (isAll ? look.around(ids) : look.at(ids)));
      for (const job of look.fresh(found)) yield decodeJob(job);
      await sleepAwake(runtime.clock, everyMs, woken);
      if (woken.aborted) wake = new AbortController();
      if (runtime.clock.monotonic() - lookedAtMs >= everyMs) isUnsure = true;
      else if (isUnsure && !signal?.aborted) await sleepAwake(runtime.clock, restMs, signal ?? undefined);
    }
  } finally {
    signal?.removeEventListener("abort", stop);
    await unsubscribe();
  }
}

/** Finds what has ended, and knows what was told. */
class Look {
  readonly #store: Store;
  readonly #filter: JobFilter;
  readonly #lookAt: number;
  readonly #began: Date;
  #latestMs: number;
  /** When each end that was told came, by the claim that ended. */
  readonly #told = new Map<string, number>();

  constructor(store: Store, { filter, lookAt, since }: Following) {
    this.#store = store;
    this.#filter = filter;
    this.#lookAt = lookAt;
    this.#began = since;
    this.#latestMs = since.getTime();
  }

  /** Those of these that match. */
  async at(ids: readonly string[]): Promise<StoredJob[]> {
    const found: StoredJob[] = [];
    for (let start = 0; start < ids.length; start += page) {
      const filter = { ...this.#filter, ids: ids.slice(start, start + page) };
      const { jobs } = await this.#store.list({ filter, limit: page, order: "oldest", cursor: null });
      found.push(...jobs);
    }
    return found;
  }

  /** Those, and whatever else has ended lately. */
  async around(ids: readonly string[]): Promise<StoredJob[]> {
    const states = this.#filter.states?.filter(isTerminal) ?? ends;
    const endedAfter = new Date(Math.max(this.#began.getTime(), this.#latestMs - overlapMs));
    const filter = { ...this.#filter, states, endedAfter };
    const found = new Set(ids);
    let left = this.#lookAt;
    let cursor: string | null = null;
    do {
      const part = await this.#store.scan({ filter, order: "newest", limit: page, lookAt: left, cursor });
      for (const { id } of part.jobs) found.add(id);
      left -= Math.max(1, part.looked);
      cursor = part.cursor;
    } while (cursor !== null && left > 0);
    return this.at([...found]);
  }

  /** Those not told yet, in the order of their ends. */
  fresh(jobs: readonly StoredJob[]): StoredJob[] {
    const fresh = jobs.filter((job) => {
      const endedMs = job.finishedAt?.getTime() ?? 0;
      const key = `${job.id} ${job.token} ${job.redrives}`;
      if (!isTerminal(job.state) || endedMs < this.#began.getTime() || this.#told.has(key)) return false;
      this.#told.set(key, endedMs);
      this.#latestMs = Math.max(this.#latestMs, endedMs);
      return true;
    });
    for (const [key, endedMs] of this.#told)
      if (endedMs < this.#latestMs - 2 * overlapMs) this.#told.delete(key);
    return fresh.sort((a, b) => (a.finishedAt?.getTime() ?? 0) - (b.finishedAt?.getTime() ?? 0));
  }
}
