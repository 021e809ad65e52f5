// How jobs get in, and how a person changes them.

import {
  type CancelOutcome,
  type EnqueueParams,
  type EnqueueResult,
  follow,
  isTerminal,
  type NewJob,
  type RedriveOutcome,
  type SelectParams,
  type SelectResult,
  type TrailKind,
  type UpdateParams,
  type UpdateResult,
} from "../../src/store/index.ts";
import { find, type Row } from "./document.ts";
import type { Session } from "./session.ts";

export function enqueue(session: Session, { jobs }: EnqueueParams): EnqueueResult[] {
  return jobs.map((job) => enqueueOne(session, job));
}

function enqueueOne({ document, now }: Session, job: NewJob): EnqueueResult {
  if (find(document, job.id) !== undefined) return { id: job.id, outcome: "existing" };
  const parents = job.after.map((id) => ({ id, row: find(document, id) }));
  const unknown = parents.find(({ row }) => row === undefined);
  if (unknown !== undefined) return { id: job.id, outcome: "refused", parent: unknown.id };
  const waitsFor = parents.flatMap(({ id, row }) => (row === undefined || isTerminal(row.state) ? [] : [id]));
  const runAt = job.runAt?.getTime() ?? now + job.delayMs;
  const { after, unique, debounce, delayMs, expireInMs, retention, fireAt, ...kept } = job;
  document.jobs.push({
    ...kept,
    tags: [...job.tags],
    runAt,
    fireAt: fireAt?.getTime() ?? runAt,
    enqueuedAt: now,
    expireAt: expireInMs === null ? null : runAt + expireInMs,
    state: waitsFor.length > 0 ? "blocked" : "waiting",
    waitsFor,
    attempt: 0,
    crashes: 0,
    rollbacks: 0,
    redrives: 0,
    token: 0,
    version: 1,
    reason: null,
    result: null,
    error: null,
    progress: null,
    claimer: null,
    claimedAt: null,
    finishedAt: null,
    cancelRequested: false,
    leaseUntil: null,
    finished: null,
    trail: [],
  });
  return { id: job.id, outcome: "added" };
}

/** Adds a line to a job's story, before what it is about changes the job. */
export function tell(
  row: Row,
  at: number,
  kind: TrailKind,
  text: string | null,
  error: string | null = null,
): void {
  const { attempt, token, claimer } = row;
  row.trail.push({ at, kind, attempt, token, claimer, text, error });
}

/** Ends a job, and unblocks or cancels the jobs that wait for it. */
export function end(session: Session, row: Row): void {
  row.finishedAt = session.now;
  row.leaseUntil = null;
  for (const child of session.document.jobs) {
    if (!child.waitsFor.includes(row.id)) continue;
    child.waitsFor = child.waitsFor.filter((id) => id !== row.id);
    if (row.state !== "succeeded" && child.afterFailure === "cancel") {
      cancelIdle(session, child, `its parent ${row.id} is ${row.state}`);
    } else if (child.waitsFor.length === 0) {
      child.state = follow(child.state, "unblock");
    }
  }
}

export function cancelIdle(session: Session, row: Row, reason: string | null): void {
  row.state = follow(row.state, "cancel");
  row.reason = reason;
  row.waitsFor = [];
  end(session, row);
}

export function cancel(session: Session, { select, reason }: SelectParams): SelectResult<CancelOutcome> {
  return byId(select, (id): CancelOutcome => {
    const row = find(session.document, id);
    if (row === undefined) return "unknown";
    if (isTerminal(row.state)) return "terminal";
    if (row.state !== "active") {
      cancelIdle(session, row, reason);
      return "cancelled";
    }
    if (!row.cancelRequested) {
      tell(row, session.now, "cancel-requested", reason);
      row.cancelRequested = true;
      row.reason = reason;
    }
    return "requested";
  });
}

export function redrive(session: Session, { select, reason }: SelectParams): SelectResult<RedriveOutcome> {
  return byId(select, (id): RedriveOutcome => {
    const row = find(session.document, id);
    if (row === undefined) return "unknown";
    if (row.state !== "dead" && row.state !== "lost") return "refused";
    tell(row, session.now, "redriven", reason);
    row.state = follow(row.state, "redrive");
    row.redrives += 1;
    row.runAt = session.now;
    Object.assign(row, { attempt: 0, crashes: 0, reason: null, expireAt: null, finishedAt: null });
    return "redriven";
  });
}

export function update({ document, now }: Session, { id, delayMs, ...changes }: UpdateParams): UpdateResult {
  const row = find(document, id);
  if (row === undefined) return { outcome: "unknown", state: null };
  if (row.state !== "waiting" && row.state !== "blocked") return { outcome: "refused", state: row.state };
  tell(row, now, "updated", null);
  const runAt = changes.runAt?.getTime() ?? (delayMs === undefined ? row.runAt : now + delayMs);
  if (row.expireAt !== null) row.expireAt += runAt - row.runAt;
  if (runAt !== row.runAt && row.schedule === null) row.fireAt = runAt;
  Object.assign(row, changes, { runAt, version: row.version + 1 });
  return { outcome: "updated", state: row.state };
}

/** A toy: only by id. */
function byId<O extends string>(select: SelectParams["select"], one: (id: string) => O): SelectResult<O> {
  if (!("ids" in select)) throw new Error("the JSON store selects jobs only by id");
  return { results: select.ids.map((id) => ({ id, outcome: one(id) })), cursor: null };
}
