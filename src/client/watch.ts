import { sleepAwake } from "../clock.ts";
import { EscapementError } from "../errors.ts";
import type { Job, JobState } from "../job.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { withRetries } from "../runtime/transient.ts";
import { isTerminal } from "../state.ts";
import type { StoredJob } from "../store/jobs.ts";
import type { Notice } from "../store/notices.ts";
import type { Connection } from "./connection.ts";
import { decodeJob, decodeTrail, type TrailLine } from "./decode.ts";

/** What happens to a job, wherever it runs. */
export type JobUpdate =
  /** The job when the watch begins, and whenever its state has changed. */
  | { readonly kind: "state"; readonly state: JobState; readonly job: Job }
  | { readonly kind: "progress"; readonly value: unknown }
  /** A line of its trail: what its handler logged, a failed attempt, a person's note. */
  | { readonly kind: "line"; readonly line: TrailLine }
  /** The last one. */
  | { readonly kind: "ended"; readonly job: Job };

export interface WatchOptions {
  /** Ends the watch. */
  readonly signal?: AbortSignal;
}

/** How often to look: no notice announces progress and log lines, and notices can be lost. */
const pollMs = 500;

/**
 * Yields what happens to a job until it has ended. The store's notices of ends and cancels wake it at once, wherever they come from; everything
 * else, and what no notice reported, is seen when it looks again.
 *
 * @throws EscapementError `not-found`
 */
export async function* watchJob(
  connection: Connection,
  runtime: Runtime,
  id: string,
  { signal }: WatchOptions,
): AsyncGenerator<JobUpdate, void, undefined> {
  const store = await connection.store();
  const over = eitherOf(connection.closing, signal);
  let wake = new AbortController();
  const stop = (): void => wake.abort();
  let known = id;
  const unsubscribe = await store.subscribe((notice: Notice) => {
    const concerns = notice.kind === "ended" || notice.kind === "cancel";
    if (concerns && (notice.ids === null || notice.ids.includes(known))) wake.abort();
  });
  over.addEventListener("abort", stop);
  const told = new Told();
  try {
    while (!over.aborted) {
      const woken = wake.signal;
      const [job] = await withRetries(runtime, () => store.get({ ids: [id] }));
      if (job === null || job === undefined)
        throw new EscapementError(
          "not-found",
          `there is no job ${JSON.stringify(id)}; it was never enqueued, or is no longer kept`,
        );
      known = job.id;
      // After the job: of one that has ended, the trail is then whole.
      const trail = await withRetries(runtime, () => store.trail({ id }));
      yield* told.updates(job, trail.map(decodeTrail));
      if (isTerminal(job.state)) return;
      await sleepAwake(runtime.clock, pollMs, woken);
      if (woken.aborted) wake = new AbortController();
    }
  } catch (error) {
    // The store was closed under a question: nothing failed.
    if (!connection.closing.aborted) throw error;
  } finally {
    over.removeEventListener("abort", stop);
    if (!connection.closing.aborted) await unsubscribe();
  }
}

/** Fires when the app stops, or when the caller has had enough. */
export function eitherOf(closing: AbortSignal, signal: AbortSignal | null | undefined): AbortSignal {
  return signal ? AbortSignal.any([closing, signal]) : closing;
}

/** Remembers what was reported about a job. */
class Told {
  #state: string | null = null;
  #progress: string | null = null;
  #lines: readonly string[] = [];

  *updates(stored: StoredJob, trail: readonly TrailLine[]): Generator<JobUpdate> {
    const job = decodeJob(stored);
    // A redrive or a retry between two looks leaves the state as it was, and raises the token.
    const state = `${stored.state} ${stored.token} ${stored.redrives}`;
    const isEnded = isTerminal(stored.state);
    if (state !== this.#state && !isEnded) yield { kind: "state", state: stored.state, job };
    this.#state = state;
    const lines = trail.map((line) => JSON.stringify(line));
    for (const line of trail.slice(overlap(this.#lines, lines))) yield { kind: "line", line };
    this.#lines = lines;
    if (stored.progress !== this.#progress && stored.progress !== null)
      yield { kind: "progress", value: job.progress };
    this.#progress = stored.progress;
    if (isEnded) yield { kind: "ended", job };
  }
}

/** How many of the lines at the beginning of a trail were there before; it loses its oldest as it grows. */
function overlap(before: readonly string[], now: readonly string[]): number {
  for (let length = Math.min(before.length, now.length); length > 0; length--) {
    const start = before.length - length;
    if (now.slice(0, length).every((line, index) => line === before[start + index])) return length;
  }
  return 0;
}
