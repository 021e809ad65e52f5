import type { JobState } from "../job.ts";
import type { StoredJob } from "../store/jobs.ts";
import type { OccurrenceRecord, OccurrencesParams } from "../store/schedules.ts";
import type { Store } from "../store/store.ts";

/** One nominal firing, or a range of skipped ones, and its fate. */
export interface Occurrence {
  readonly key: string;
  readonly fireAt: Date;
  /** The last of a range. */
  readonly until: Date | null;
  readonly count: number;
  /** `skipped`, or the state of its job; `forgotten` when the job is no longer kept. */
  readonly fate: "skipped" | JobState | "forgotten";
  /** Why it was skipped, or why its job is where it is. */
  readonly reason: string | null;
  readonly jobId: string | null;
  /** How many attempts its job has taken; null if there is no job. */
  readonly attempt: number | null;
  readonly plannedAt: Date;
  readonly claimedAt: Date | null;
  readonly finishedAt: Date | null;
  /** From the nominal time to the latest claim. */
  readonly lateMs: number | null;
  /** Who planned it. */
  readonly plannedBy: string;
  /** Who claimed it last. */
  readonly node: string | null;
}

const pageSize = 1_000;

/** The latest rows of a span, in order: the store reads from its start, page by page. */
export async function latestRows(store: Store, params: OccurrencesParams): Promise<OccurrenceRecord[]> {
  let rows: OccurrenceRecord[] = [];
  for (let from = params.from; ; ) {
    const page = await store.occurrences({ ...params, from, limit: pageSize });
    rows = [...rows, ...page].slice(-params.limit);
    const last = page.at(-1);
    if (page.length < pageSize || last === undefined) return rows;
    from = new Date(last.fireAt.getTime() + 1);
  }
}

/** Reads the latest of the ledger together with the jobs it led to. */
export async function readOccurrences(store: Store, params: OccurrencesParams): Promise<Occurrence[]> {
  const rows = await latestRows(store, params);
  const ids = [...new Set(rows.flatMap(({ jobId }) => jobId ?? []))];
  const jobs = ids.length === 0 ? [] : await store.get({ ids });
  const byId = new Map(ids.map((id, index) => [id, jobs[index] ?? null]));
  return rows.map((row) => {
    const job = row.jobId === null ? null : (byId.get(row.jobId) ?? null);
    return {
      key: row.key,
      fireAt: row.fireAt,
      until: row.until,
      count: row.count,
      fate: row.fate === "skipped" ? "skipped" : (job?.state ?? "forgotten"),
      reason: row.fate === "skipped" ? row.reason : (job?.reason ?? waitingReason(job)),
      jobId: row.jobId,
      attempt: job?.attempt ?? null,
      plannedAt: row.plannedAt,
      claimedAt: job?.claimedAt ?? null,
      finishedAt: job?.finishedAt ?? null,
      lateMs: job?.claimedAt ? job.claimedAt.getTime() - row.fireAt.getTime() : null,
      plannedBy: row.node,
      node: job?.claimer ?? null,
    };
  });
}

/** Why a job that has not started is still waiting, as far as the job itself shows. */
function waitingReason(job: StoredJob | null): string | null {
  if (job === null) return null;
  if (job.state === "blocked") return `waits for ${job.waitsFor.join(", ")}`;
  if (job.state !== "waiting") return null;
  return job.attempt > 0
    ? `waits for attempt ${job.attempt + 1}`
    : "waits for a free worker with its handler";
}
