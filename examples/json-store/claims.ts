// The way through: how a worker takes jobs, keeps them and ends them. What an outcome means is decided by the core (`settle`).

import {
  type ClaimedJob,
  type ClaimParams,
  type ClaimRef,
  type ClaimResult,
  type ExtendParams,
  type ExtendResult,
  type FinishParams,
  type FinishResult,
  follow,
  isFragile,
  isTerminal,
  type Outcome,
  type ReapParams,
  type ReapResult,
  type ReportParams,
  type StepParams,
  type StepResult,
  settle,
  story,
} from "../../src/store/index.ts";
import { find, type Row } from "./document.ts";
import { cancelIdle, end, tell } from "./jobs.ts";
import { toStored } from "./questions.ts";
import type { Session } from "./session.ts";

export function claim(session: Session, params: ClaimParams): ClaimResult {
  const { document, now } = session;
  const last = document.claims[params.claimer];
  const base = { now: new Date(now), fragile: false };
  if (last !== undefined && params.sequence < last.sequence) {
    return { ...base, outcome: "stale", jobs: [], nextAt: null };
  }
  let rows: Row[];
  if (last?.sequence === params.sequence) {
    rows = last.jobs.flatMap((ref) => {
      const row = held(session, params.claimer, ref);
      return row !== undefined && (row.leaseUntil ?? 0) > session.monotonic ? [row] : [];
    });
  } else {
    rows = take(session, params);
    const jobs = rows.map(({ id, token }) => ({ id, token }));
    document.claims[params.claimer] = { sequence: params.sequence, jobs };
  }
  const next = candidates(session, params).map(({ runAt }) => runAt);
  const fragile = candidates(session, params).some((row) => isFragile(row) && row.runAt <= now);
  const nextAt = next.length === 0 ? null : new Date(Math.min(...next));
  return { ...base, outcome: "claimed", jobs: rows.map(toClaimed), nextAt, fragile };
}

/** Waiting jobs that this claimer could take now or later, in the order of claims. */
function candidates({ document, now }: Session, { names, queues }: ClaimParams): Row[] {
  const wanted = new Set(names.map(({ name }) => name));
  return document.jobs
    .filter(({ state, relayed }) => state === "waiting" && !relayed)
    .filter(({ name }) => wanted.has(name))
    .filter(({ queue }) => queues === null || queues.some((one) => one.queue === queue && one.limit > 0))
    .filter((row) => !isExpired(row, now))
    .toSorted((a, b) => b.priority - a.priority || a.runAt - b.runAt);
}

function take(session: Session, params: ClaimParams): Row[] {
  const due = candidates(session, params).filter(({ runAt }) => runAt <= session.now);
  const fragile = due.find(isFragile);
  if (fragile !== undefined && params.alone && params.limit > 0) return [hold(session, params, fragile)];
  const left = new Map(params.queues?.map(({ queue, limit }) => [queue, limit]));
  const taken: Row[] = [];
  for (const row of due) {
    if (taken.length >= params.limit) break;
    const leftInQueue = left.get(row.queue) ?? Number.POSITIVE_INFINITY;
    if (isFragile(row) || leftInQueue === 0 || isAtLimit(session, params, row)) continue;
    left.set(row.queue, leftInQueue - 1);
    taken.push(hold(session, params, row));
  }
  return taken;
}

/** As many jobs of its key are active as its definition allows. Rates are left out. */
function isAtLimit({ document }: Session, { names }: ClaimParams, { name, concurrencyKey }: Row): boolean {
  const limit = names.find((one) => one.name === name)?.concurrency ?? null;
  if (limit === null || concurrencyKey === null) return false;
  return (
    document.jobs.filter((row) => row.state === "active" && row.concurrencyKey === concurrencyKey).length >=
    limit
  );
}

function hold({ now, monotonic }: Session, { claimer, leaseMs }: ClaimParams, row: Row): Row {
  row.state = follow(row.state, "claim");
  row.token += 1;
  row.attempt += 1;
  return Object.assign(row, { claimer, claimedAt: now, reason: null, leaseUntil: monotonic + leaseMs });
}

export function finish(session: Session, { claimer, finishes }: FinishParams): FinishResult[] {
  return finishes.map(({ outcome, ...ref }) => {
    const row = held(session, claimer, ref);
    if (row !== undefined) {
      settleClaim(session, row, outcome);
      row.finished = { token: ref.token, claimer };
      return { outcome: "written", state: row.state };
    }
    const known = find(session.document, ref.id);
    const isRepeat = known?.finished?.token === ref.token && known.finished.claimer === claimer;
    return { outcome: isRepeat ? "repeated" : "stale", state: known?.state ?? null };
  });
}

export function step(session: Session, { finishes, claim: wanted }: StepParams): StepResult {
  const finished = finish(session, { claimer: wanted.claimer, finishes });
  return { finished, claimed: claim(session, wanted) };
}

export function extend(session: Session, { claimer, leaseMs, claims }: ExtendParams): ExtendResult[] {
  return claims.map((ref) => {
    const row = held(session, claimer, ref);
    if (row === undefined) return { outcome: "stale", cancelRequested: false };
    row.leaseUntil = session.monotonic + leaseMs;
    return { outcome: "extended", cancelRequested: row.cancelRequested };
  });
}

export function report(session: Session, { claimer, reports }: ReportParams): void {
  for (const { progress, lines, ...ref } of reports) {
    const row = held(session, claimer, ref);
    if (row === undefined) continue;
    if (progress !== undefined) row.progress = progress;
    for (const line of lines) tell(row, session.now, "log", line);
  }
}

export function reap(session: Session, { limit, until = Number.POSITIVE_INFINITY }: ReapParams): ReapResult {
  const { document, now, monotonic } = session;
  const isOver = (row: Row, by: number): boolean =>
    (row.leaseUntil !== null && row.leaseUntil <= by) || (mayExpire(row) && isExpired(row, now));
  const over = document.jobs.filter((row) => isOver(row, Math.min(monotonic, until))).slice(0, limit);
  for (const row of over) {
    if (row.state === "active") settleClaim(session, row, { kind: "crash", reason: "its lease ran out" });
    else cancelIdle(session, row, "expired");
  }
  return {
    reaped: over.map(({ id, name, queue, state, reason }) => ({ id, name, queue, state, reason })),
    more: document.jobs.some((row) => isOver(row, monotonic)),
    mark: monotonic,
  };
}

/** The core decides, this writes it down. */
function settleClaim(session: Session, row: Row, outcome: Outcome): void {
  const { delayMs, error, rollbacks, ...settled } = settle(row, outcome);
  const line = story(outcome);
  if (line !== null) tell(row, session.now, line.kind, line.text, line.error);
  Object.assign(row, settled, { leaseUntil: null, rollbacks: row.rollbacks + rollbacks });
  if (delayMs !== null) row.runAt = session.now + delayMs;
  if (error !== null) row.error = error;
  if (isTerminal(row.state)) end(session, row);
}

/** The job of a claim that is still the claimer's. */
function held({ document }: Session, claimer: string, { id, token }: ClaimRef): Row | undefined {
  const row = find(document, id);
  return row?.state === "active" && row.token === token && row.claimer === claimer ? row : undefined;
}

function mayExpire({ state, attempt }: Row): boolean {
  return (state === "waiting" || state === "blocked") && attempt === 0;
}

function isExpired(row: Row, now: number): boolean {
  return mayExpire(row) && row.expireAt !== null && row.expireAt <= now;
}

function toClaimed(row: Row): ClaimedJob {
  const { id, name, queue, delivery, input, priority, tags, schedule, cancelRequested } = row;
  const { attempt, attempts, crashes, maxCrashes, redrives, token } = row;
  const { runAt, fireAt, enqueuedAt } = toStored(row);
  const counts = { attempt, attempts, crashes, maxCrashes, redrives, token };
  const times = { runAt, fireAt, enqueuedAt };
  return { id, name, queue, delivery, input, priority, tags, schedule, cancelRequested, ...counts, ...times };
}
