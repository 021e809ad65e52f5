import type { ListParams, ListResult, StoredJob, TrailEntry } from "../../src/store/index.ts";
import { find, type Row } from "./document.ts";
import type { Session } from "./session.ts";

export function get(
  { document }: Session,
  { ids }: { readonly ids: readonly string[] },
): (StoredJob | null)[] {
  return ids.map((id) => {
    const row = find(document, id);
    return row === undefined ? null : toStored(row);
  });
}

export function trail({ document }: Session, { id }: { readonly id: string }): TrailEntry[] {
  return (find(document, id)?.trail ?? []).map((line) => ({ ...line, at: new Date(line.at) }));
}

/** A toy: one page, and only the terms that it needs. */
export function list({ document }: Session, { filter, limit, order }: ListParams): ListResult {
  const { names, queues, tags = [] } = filter;
  const jobs = document.jobs
    .filter(({ name }) => names?.includes(name) ?? true)
    .filter(({ queue }) => queues?.includes(queue) ?? true)
    .filter((row) => tags.every((tag) => row.tags.includes(tag)));
  const ordered = order === "newest" ? jobs.toReversed() : jobs;
  return { jobs: ordered.slice(0, limit).map(toStored), cursor: null };
}

export function toStored(row: Row): StoredJob {
  const { afterFailure, leaseUntil, finished, trail: _, ...kept } = row;
  return {
    ...kept,
    runAt: new Date(row.runAt),
    fireAt: new Date(row.fireAt),
    enqueuedAt: new Date(row.enqueuedAt),
    expireAt: dateOf(row.expireAt),
    claimedAt: dateOf(row.claimedAt),
    finishedAt: dateOf(row.finishedAt),
  };
}

function dateOf(instant: number | null): Date | null {
  return instant === null ? null : new Date(instant);
}
