import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { JobSummary, JobsPage } from "../api/answers.ts";
import { type Asking, useQuery } from "../api/use-query.ts";
import { keep, recall } from "../kept.ts";
import { endedStates, type Filter } from "./filter.ts";

export interface Row {
  readonly job: JobSummary;
  /** It has changed, and would not be found again. */
  readonly isGone: boolean;
}

export interface LivePage {
  readonly page: Asking<JobsPage>;
  readonly rows: readonly Row[];
  /** How many have come since, at least. */
  readonly fresh: number;
  readonly hasMoreFresh: boolean;
  showFresh(): void;
}

interface Frozen {
  readonly key: string;
  readonly until: string;
}

interface Rows {
  readonly key: string;
  readonly rows: readonly Row[];
}

/** What one had is what one comes back to, as long as it answers the same question. */
function recalled<T extends { readonly key: string }>(name: string, key: string): T | null {
  const kept = recall<T>(name);
  return kept?.key === key ? kept : null;
}

const everyMs = 3_000;
const pageSize = 50;
const mostFresh = 100;

/**
 * A page of jobs that stays where it is: rows change in place, none moves, and what has come since is only counted. After the first answer the
 * page is asked for as of then.
 */
export function useLivePage(filter: Filter, cursor: string | null, isPaused: boolean): LivePage {
  const key = JSON.stringify([filter, cursor]);
  const [given, setFrozen] = useState<Frozen | null>(null);
  const frozen = given?.key === key ? given : recalled<Frozen>("frozen", key);
  const until = frozen?.until ?? null;
  const page = useQuery<JobsPage>(
    "jobs",
    { ...filter, until: until ?? filter["until"], limit: pageSize, cursor },
    { everyMs, isPaused },
  );
  const newer = useQuery<JobsPage>(
    until === null || cursor !== null || !mayHaveNewer(filter, until) ? null : "jobs",
    { ...filter, since: until, limit: mostFresh },
    { everyMs, isPaused },
  );
  const kept = useRef<Rows | null>(null);
  if (kept.current?.key !== key) kept.current = recalled<Rows>("rows", key);
  if (page.data !== null && page.isCurrent) {
    const before = kept.current?.rows ?? [];
    kept.current = { key, rows: before.length === 0 ? rowsOf(page.data) : merged(before, page.data) };
    keep("rows", kept.current);
  }
  const last = kept.current === null ? null : lastOf(kept.current.rows, filter);
  useEffect(() => {
    if (cursor !== null || until !== null || last === null) return;
    const next = { key, until: new Date(last + 1).toISOString() };
    keep("frozen", next);
    setFrozen(next);
  }, [key, until, last]);
  const showFresh = useCallback(() => {
    kept.current = null;
    keep("rows", null);
    keep("frozen", null);
    setFrozen(null);
    page.refresh();
  }, [key]);
  const isCounted = until !== null && newer.isCurrent && mayHaveNewer(filter, until);
  return {
    page,
    rows: kept.current?.rows ?? [],
    fresh: isCounted ? (newer.data?.jobs.length ?? 0) : 0,
    hasMoreFresh: isCounted && newer.data?.cursor != null,
    showFresh,
  };
}

/** A span that ends before what is shown can have nothing after it. */
function mayHaveNewer({ until: asked }: Filter, shown: string): boolean {
  return asked === undefined || Date.parse(shown) < Date.parse(asked);
}

/** The API's `since` and `until` mean the end of jobs where only ended ones are asked for, and their enqueueing otherwise. */
function lastOf(rows: readonly Row[], filter: Filter): number | null {
  const isByEnd = (endedStates as readonly string[]).includes(filter["state"] ?? "");
  const times = rows.map(({ job }) => Date.parse(isByEnd ? (job.finishedAt ?? job.runAt) : job.enqueuedAt));
  return times.length === 0 ? null : Math.max(...times);
}

function rowsOf({ jobs }: JobsPage): Row[] {
  return jobs.map((job) => ({ job, isGone: false }));
}

function merged(before: readonly Row[], { jobs, cursor }: JobsPage): Row[] {
  const found = new Map(jobs.map((job) => [job.id, job]));
  // A short page with a cursor has not looked at everything.
  const isWhole = jobs.length === pageSize || cursor === null;
  return before.map((row) => {
    const job = found.get(row.job.id);
    return job === undefined ? { job: row.job, isGone: row.isGone || isWhole } : { job, isGone: false };
  });
}
