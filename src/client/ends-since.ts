import { createHash } from "node:crypto";
import type { JobSketch, ScanFilter, ScanParams, ScanResult } from "../store/questions.ts";

/** Ends become visible in no strict order: how far back to look again, and how often. */
export const overlapMs = 10_000;
const lookBackEveryMs = 5_000;
/** What ended this short a time ago is asked for by every look. */
const recentMs = 2_000;
const pageSize = 1_000;

/** What identifies an end of a job: after a redrive it has another. */
type End = Pick<JobSketch, "id" | "redrives" | "finishedAt">;

/** Short, and as good as unique among the ends of some seconds. */
export function digestOfEnd({ id, redrives, finishedAt }: End): string {
  const text = JSON.stringify([id, redrives, finishedAt?.getTime()]);
  return createHash("sha256").update(text).digest("base64url").slice(0, digestLength);
}

export const digestLength = 8;

export interface EndsSinceOptions {
  readonly scan: (params: ScanParams) => Promise<ScanResult>;
  readonly filter: ScanFilter;
  /** By the store's clock. What ended before is not reported. */
  readonly since: Date;
  /** Digests of ends that were reported before, of the last ten seconds before `since`. */
  readonly told?: readonly string[];
  /** Milliseconds that only rise, at the pace of the store's clock. */
  readonly elapsedMs: () => number;
  /** About how many ends one look returns; the rest comes with the next one. */
  readonly most: number;
}

/**
 * Finds jobs that have ended since a time, each end once, however long ago they were enqueued. An end that becomes visible more than ten seconds
 * after the time it carries is missed here.
 */
export class EndsSince {
  readonly #options: EndsSinceOptions;
  readonly #beganMs: number;
  /** Where the next look continues. */
  #fromMs: number;
  #lookedBackMs: number;
  readonly #told = new Map<string, number>();

  constructor(options: EndsSinceOptions) {
    this.#options = options;
    this.#beganMs = options.elapsedMs();
    this.#fromMs = options.since.getTime();
    this.#lookedBackMs = this.#beganMs;
    for (const digest of options.told ?? []) this.#told.set(digest, this.#fromMs);
  }

  /** What has ended since the last time, and what became visible late: for {@link fresh}. A call that failed may be repeated. */
  async find(): Promise<JobSketch[]> {
    const { since, elapsedMs, most } = this.#options;
    const asOfMs = since.getTime() + elapsedMs() - this.#beganMs;
    const ahead = await this.#between(this.#fromMs, null, most);
    const isDueBack = elapsedMs() - this.#lookedBackMs >= lookBackEveryMs;
    const back = isDueBack ? await this.#between(this.#fromMs - overlapMs, this.#fromMs, Infinity) : null;
    if (isDueBack) this.#lookedBackMs = elapsedMs();
    const lastMs = endOf(ahead.jobs.at(-1));
    this.#fromMs = Math.max(this.#fromMs, lastMs, ahead.isAll ? asOfMs - recentMs : 0);
    return [...(back?.jobs ?? []), ...ahead.jobs];
  }

  /** Those not reported yet, in the order of their ends; from now on they count as reported. */
  fresh<T extends End>(jobs: readonly T[]): T[] {
    const fresh = jobs.filter((job) => {
      const key = digestOfEnd(job);
      if (endOf(job) < this.#options.since.getTime() || this.#told.has(key)) return false;
      this.#told.set(key, endOf(job));
      return true;
    });
    for (const [key, endedMs] of this.#told)
      if (endedMs < this.#fromMs - 2 * overlapMs) this.#told.delete(key);
    return fresh.sort((a, b) => endOf(a) - endOf(b));
  }

  async #between(
    fromMs: number,
    beforeMs: number | null,
    most: number,
  ): Promise<{ readonly jobs: readonly JobSketch[]; readonly isAll: boolean }> {
    const { scan, since } = this.#options;
    const filter: ScanFilter = {
      ...this.#options.filter,
      endedAfter: new Date(Math.max(since.getTime(), fromMs)),
      ...(beforeMs === null ? {} : { endedBefore: new Date(beforeMs) }),
    };
    const question = { filter, by: "ended", order: "oldest", limit: pageSize, lookAt: pageSize } as const;
    const jobs: JobSketch[] = [];
    let cursor: string | null = null;
    do {
      const page: ScanResult = await scan({ ...question, cursor });
      jobs.push(...page.jobs);
      cursor = page.cursor;
      // Not in the middle of an instant, which the next look would begin with again.
    } while (cursor !== null && (jobs.length < most || endOf(jobs.at(-1)) <= fromMs));
    return { jobs, isAll: cursor === null };
  }
}

function endOf(job: Pick<End, "finishedAt"> | undefined): number {
  return job?.finishedAt?.getTime() ?? 0;
}
