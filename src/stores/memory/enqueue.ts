import { isOrphan, isTerminal, orphanReason } from "../../state.ts";
import { refuseAll } from "../../store/all-or-none.ts";
import type { EnqueueResult, NewJob } from "../../store/jobs.ts";
import type { Data } from "./data/data.ts";
import { cancelIdle } from "./end.ts";
import { holdsUniqueKey, type Row } from "./rows.ts";

export function enqueue(data: Data, jobs: readonly NewJob[], now: number): EnqueueResult[] {
  return jobs.map((job) => {
    const result = decide(data, job, now);
    if (result.outcome === "added") add(data, job, now);
    if (result.outcome === "debounced") debounce(data, job, now);
    if (result.outcome === "absorbed" || result.outcome === "debounced") remember(data, job.id, result.id);
    return result;
  });
}

/** The same, unless a part of it would be refused. */
export function enqueueAllOrNone(data: Data, jobs: readonly NewJob[], now: number): EnqueueResult[] {
  const staged = new Set<string>();
  const planned = jobs.map((job) => {
    const result = decide(data, job, now, staged);
    staged.add(job.id);
    return result;
  });
  const isRefused = planned.some(({ outcome }) => outcome === "refused");
  return isRefused ? refuseAll(jobs, planned) : enqueue(data, jobs, now);
}

/**
 * The result of enqueueing the job, without doing it.
 *
 * @param staged ids that will exist by then.
 */
export function decide(
  data: Data,
  job: NewJob,
  now: number,
  staged: ReadonlySet<string> = new Set(),
): EnqueueResult {
  const known = data.resolve(job.id);
  if (known !== undefined) return { id: known.id, outcome: "existing" };
  if (staged.has(job.id)) return { id: job.id, outcome: "existing" };
  const parent = job.after.find((id) => data.resolve(id) === undefined && !staged.has(id));
  if (parent !== undefined) return { id: job.id, outcome: "refused", parent };
  const holder = job.unique === null ? undefined : uniqueHolder(data, job.unique.key, now);
  if (holder !== undefined) return { id: holder.id, outcome: "absorbed" };
  const earlier = debounceTarget(data, job);
  if (earlier !== undefined) return { id: earlier.id, outcome: "debounced" };
  return { id: job.id, outcome: "added" };
}

/** The job that holds a unique key now. */
export function uniqueHolder(data: Data, key: string, now: number): Row | undefined {
  const row = data.jobs.get(data.uniques.get(key) ?? "");
  return row !== undefined && holdsUniqueKey(row, now) ? row : undefined;
}

function debounceTarget(data: Data, job: NewJob): Row | undefined {
  return job.debounce === null ? undefined : data.indexes.debounced.get(job.debounce.key)?.first();
}

function remember(data: Data, alias: string, id: string): void {
  data.aliases.set(alias, id);
  data.jobs.get(id)?.aliases.push(alias);
}

function add(data: Data, job: NewJob, now: number): void {
  const parents = job.after.map((id) => data.resolve(id)).filter((row) => row !== undefined);
  const waitsFor = new Set(parents.filter((row) => !isTerminal(row.state)).map((row) => row.id));
  const row = newRow(job, data.nextOrder(), waitsFor, now);
  data.insert(row);
  if (job.unique !== null) data.uniques.set(job.unique.key, job.id);
  for (const id of waitsFor) data.jobs.get(id)?.children.add(row.id);
  const failed = parents.find((parent) => isTerminal(parent.state) && parent.state !== "succeeded");
  if (failed !== undefined && isOrphan(job, failed.state)) {
    cancelIdle(data, row, "cancel", orphanReason(failed), now);
  }
}

function newRow(job: NewJob, order: number, waitsFor: ReadonlySet<string>, now: number): Row {
  const runAt = dueAt(job, now);
  return {
    order,
    id: job.id,
    name: job.name,
    queue: job.queue,
    delivery: job.delivery,
    input: job.input,
    priority: job.priority,
    tags: [...job.tags],
    runAt,
    fireAt: job.fireAt?.getTime() ?? runAt,
    enqueuedAt: now,
    expireAt: job.expireInMs === null ? null : runAt + job.expireInMs,
    attempt: 0,
    attempts: job.attempts,
    crashes: 0,
    maxCrashes: job.maxCrashes,
    redrives: 0,
    rollbacks: 0,
    token: 0,
    version: 1,
    schedule: job.schedule,
    state: waitsFor.size === 0 ? "waiting" : "blocked",
    reason: null,
    result: null,
    error: null,
    progress: null,
    claimer: null,
    claimedAt: null,
    finishedAt: null,
    cancelRequested: false,
    afterFailure: job.afterFailure,
    unique: job.unique === null ? null : { key: job.unique.key, until: endOfUnique(job.unique.forMs, now) },
    debounceKey: job.debounce?.key ?? null,
    concurrencyKey: job.concurrencyKey,
    rateKey: job.rateKey,
    retention: job.retention,
    relayed: job.relayed,
    slot: job.slot,
    ahead: false,
    leaseUntil: null,
    finished: null,
    waitsFor,
    children: new Set(),
    aliases: [],
    trail: [],
  };
}

function dueAt(job: NewJob, now: number): number {
  if (job.debounce !== null) return now + job.debounce.waitMs;
  return job.runAt?.getTime() ?? now + job.delayMs;
}

function endOfUnique(forMs: number | null, now: number): number | null {
  return forMs === null ? null : now + forMs;
}

function debounce(data: Data, job: NewJob, now: number): void {
  const row = debounceTarget(data, job);
  if (row === undefined || job.debounce === null) return;
  const { waitMs, maxMs } = job.debounce;
  const runAt = Math.min(now + waitMs, maxMs === null ? Number.POSITIVE_INFINITY : row.enqueuedAt + maxMs);
  data.write(row, {
    ...moved(row, runAt),
    input: job.input,
    concurrencyKey: job.concurrencyKey,
    rateKey: job.rateKey,
    version: row.version + 1,
  });
}

/** What changes with a job's time: an occurrence keeps its nominal one, and an expiry moves with it. */
export function moved(row: Row, runAt: number): Pick<Row, "runAt" | "fireAt" | "expireAt"> {
  return {
    runAt,
    fireAt: row.schedule === null ? runAt : row.fireAt,
    expireAt: row.expireAt === null ? null : row.expireAt + runAt - row.runAt,
  };
}
