import { sleepAwake } from "../clock.ts";
import type { Job, JobState } from "../job.ts";
import { checkKnown } from "../options.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { withRetries } from "../runtime/transient.ts";
import { isTerminal } from "../state.ts";
import type { StoredJob } from "../store/jobs.ts";
import type { Notice } from "../store/notices.ts";
import type { JobFilter } from "../store/questions.ts";
import type { Store } from "../store/store.ts";
import type { Connection } from "./connection.ts";
import { decodeJob } from "./decode.ts";
import { EndsSince } from "./ends-since.ts";
import { checkFilter } from "./filter.ts";
import { eitherOf, type WatchOptions } from "./watch.ts";

export type SubscribeOptions = WatchOptions;

/** How often to look where notices say what ended, and where they do not. */
const listeningMs = 15_000;
const pollingMs = 1_000;
/** Hints in quick succession share one look. */
const restMs = 100;
const page = 1_000;
const mostAtOnce = 5_000;
const ends: readonly JobState[] = ["succeeded", "dead", "lost", "cancelled"];

/** Reports jobs that end from now on, wherever they ran, each end once. Resolves when it is known what "now" is: nothing after that is missed. */
export async function subscribeToEnds(
  connection: Connection,
  runtime: Runtime,
  filter: JobFilter,
  options: SubscribeOptions,
): Promise<AsyncGenerator<Job, void, undefined>> {
  checkKnown(options, ["signal"], "subscribe");
  checkFilter(filter);
  const { now: since } = await withRetries(runtime, async () => (await connection.store()).health());
  return follow({ connection, runtime, filter, since, signal: options.signal ?? null });
}

interface Following {
  readonly connection: Connection;
  readonly runtime: Runtime;
  readonly filter: JobFilter;
  readonly since: Date;
  readonly signal: AbortSignal | null;
}

async function* follow(following: Following): AsyncGenerator<Job, void, undefined> {
  const { connection, runtime } = following;
  const over = eitherOf(connection.closing, following.signal);
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
  over.addEventListener("abort", stop);
  let lookedAtMs = runtime.clock.monotonic();
  try {
    while (!over.aborted) {
      const [woken, ids, isAll] = [wake.signal, [...named], isUnsure];
      named = new Set();
      isUnsure = false;
      if (isAll) lookedAtMs = runtime.clock.monotonic();
      for (const job of await (isAll ? look.around(ids) : look.at(ids))) yield decodeJob(job);
      await sleepAwake(runtime.clock, everyMs, woken);
      if (woken.aborted) wake = new AbortController();
      if (runtime.clock.monotonic() - lookedAtMs >= everyMs) isUnsure = true;
      else if (isUnsure && !over.aborted) await sleepAwake(runtime.clock, restMs, over);
    }
  } catch (error) {
    // The store was closed under a question: nothing failed.
    if (!connection.closing.aborted) throw error;
  } finally {
    over.removeEventListener("abort", stop);
    if (!connection.closing.aborted) await unsubscribe();
  }
}

/** Finds what has ended, and knows what was reported. */
class Look {
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #filter: JobFilter;
  readonly #ends: EndsSince;

  constructor(store: Store, { runtime, filter, since }: Following) {
    this.#store = store;
    this.#runtime = runtime;
    this.#filter = filter;
    this.#ends = new EndsSince({
      scan: (params) => store.scan(params),
      filter: { ...filter, states: filter.states?.filter(isTerminal) ?? ends },
      since,
      elapsedMs: () => runtime.clock.monotonic(),
      most: mostAtOnce,
    });
  }

  /** Those of these that match, have ended and were not reported yet, in the order of their ends. */
  async at(ids: readonly string[]): Promise<StoredJob[]> {
    const found: StoredJob[] = [];
    for (let start = 0; start < ids.length; start += page) {
      const filter = { ...this.#filter, ids: ids.slice(start, start + page) };
      const { jobs } = await withRetries(this.#runtime, () =>
        this.#store.list({ filter, limit: page, order: "oldest", cursor: null }),
      );
      found.push(...jobs.filter(({ state }) => isTerminal(state)));
    }
    return this.#ends.fresh(found);
  }

  /** Those, and whatever else has ended. */
  async around(ids: readonly string[]): Promise<StoredJob[]> {
    const seen = await withRetries(this.#runtime, () => this.#ends.find());
    return this.at([...new Set([...ids, ...seen.map(({ id }) => id)])]);
  }
}
