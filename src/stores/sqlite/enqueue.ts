import { isTerminal } from "../../state.ts";
import type { EnqueueResult, NewJob } from "../../store.ts";
import { changeIdle } from "./change.ts";
import { cancelIdle, orphanReason } from "./end.ts";
import { openGate } from "./gates.ts";
import { findBySeq, findJob, type JobRow, laneOf, resolveJob, shelfOf } from "./jobs.ts";
import { numberOf, numberOrNull, textOf } from "./rows.ts";
import type { Session } from "./session.ts";
import { takeUniqueKey, uniqueHolder } from "./unique.ts";

export function enqueue(session: Session, jobs: readonly NewJob[]): EnqueueResult[] {
  return jobs.map((job) => enqueueOne(session, job));
}

function enqueueOne(session: Session, job: NewJob): EnqueueResult {
  const known = resolveEnded(session, job.id);
  if (known !== null) return { id: known, outcome: "existing" };
  if (job.unique === null && job.debounce === null && job.after.length === 0) {
    return { id: job.id, outcome: insert(session, job, "waiting") ? "added" : "existing" };
  }
  return enqueueBound(session, job);
}

/** The job that stands for an id which is in history or an alias; whether it is in the hot table shows when it is inserted. */
function resolveEnded(session: Session, id: string): string | null {
  const { connection, ns } = session;
  const found = connection.get(
    `select id, null as job from escapement_history where ns = ?1 and id = ?2
     union all select id, job from escapement_aliases where ns = ?1 and id = ?2`,
    ns,
    id,
  );
  if (found === undefined) return null;
  const job = numberOrNull(found["job"]);
  return job === null ? id : idOf(session, job);
}

function idOf(session: Session, seq: number): string {
  const row = session.connection.get(
    "select id from escapement_jobs where seq = ?1 union all select id from escapement_history where seq = ?1",
    seq,
  );
  return textOf(row?.["id"]);
}

/** A job with parents or with a key that others may hold. */
function enqueueBound(session: Session, job: NewJob): EnqueueResult {
  if (findJob(session, job.id) !== null) return { id: job.id, outcome: "existing" };
  const parents: JobRow[] = [];
  for (const id of job.after) {
    const parent = resolveJob(session, id);
    if (parent === null) return { id: job.id, outcome: "refused", parent: id };
    parents.push(parent);
  }
  const holder = job.unique === null ? null : uniqueHolder(session, job.unique.key);
  if (holder !== null) return absorb(session, job, holder, "absorbed");
  const earlier = debounceTarget(session, job);
  if (earlier !== null) {
    debounce(session, job, earlier);
    return absorb(session, job, earlier, "debounced");
  }
  add(session, job, parents);
  return { id: job.id, outcome: "added" };
}

function absorb(
  session: Session,
  job: NewJob,
  target: number,
  outcome: "absorbed" | "debounced",
): EnqueueResult {
  const { connection, ns } = session;
  connection.run("insert into escapement_aliases (ns, id, job) values (?, ?, ?)", ns, job.id, target);
  return { id: idOf(session, target), outcome };
}

function add(session: Session, job: NewJob, parents: readonly JobRow[]): void {
  const open = parents.filter(({ state }) => !isTerminal(state));
  insert(session, job, open.length === 0 ? "waiting" : "blocked");
  const row = findJob(session, job.id);
  if (row === null) return;
  if (job.unique !== null) {
    const { key, forMs } = job.unique;
    takeUniqueKey(session, key, row.seq, forMs === null ? null : session.now + Math.trunc(forMs));
  }
  for (const [position, parent] of open.entries()) {
    session.connection.run(
      "insert or ignore into escapement_parents (parent, child, position) values (?, ?, ?)",
      parent.seq,
      row.seq,
      position,
    );
  }
  const failed = parents.find(({ state }) => isTerminal(state) && state !== "succeeded");
  if (failed !== undefined && job.afterFailure === "cancel") {
    cancelIdle(session, row, "cancel", orphanReason(failed));
  }
}

const insertJob = `insert into escapement_jobs (
    ns, id, state, shelf, name, queue, delivery, priority, run_at, fire_at, enqueued_at, attempts, max_crashes, slot,
    expire_at, relayed, lane, concurrency_key, rate_key, unique_key, unique_ms, debounce_key, after_failure, schedule, tags, input
  ) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  on conflict do nothing`;

/** Most jobs have none of the rarer things: binding them would cost as much as the rest. */
const insertPlainJob = `insert into escapement_jobs (
    ns, id, state, shelf, name, queue, delivery, priority, run_at, fire_at, enqueued_at, attempts, max_crashes, slot, input
  ) values (?, ?, 'waiting', 'plain', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  on conflict do nothing`;

/** Returns whether the id was new. */
function insert(session: Session, job: NewJob, state: "waiting" | "blocked"): boolean {
  const runAt = Math.trunc(dueAt(job, session.now));
  const lane = laneOf(job.concurrencyKey, job.rateKey);
  const shelf = state === "waiting" ? shelfOf({ ...job, crashes: 0, lane }) : null;
  const changes =
    shelf === "plain" && isSimple(job)
      ? insertSimple(session, job, runAt)
      : insertFull(session, job, runAt, { state, shelf, lane });
  if (changes === 0) return false;
  if (state === "waiting") session.notices.claimable(job.queue);
  if (shelf === "lane" && lane !== null) openGate(session, { lane, queue: job.queue, name: job.name }, runAt);
  return true;
}

function isSimple(job: NewJob): boolean {
  return (
    job.unique === null &&
    job.debounce === null &&
    job.expireInMs === null &&
    job.schedule === null &&
    job.tags.length === 0 &&
    job.afterFailure === "cancel"
  );
}

function insertSimple({ connection, ns, now }: Session, job: NewJob, runAt: number): number {
  return connection.run(
    insertPlainJob,
    ns,
    job.id,
    job.name,
    job.queue,
    job.delivery,
    job.priority,
    runAt,
    job.fireAt?.getTime() ?? runAt,
    now,
    job.attempts,
    job.maxCrashes,
    job.slot,
    job.input,
  );
}

function insertFull(
  { connection, ns, now }: Session,
  job: NewJob,
  runAt: number,
  place: { readonly state: string; readonly shelf: string | null; readonly lane: string | null },
): number {
  return connection.run(
    insertJob,
    ns,
    job.id,
    place.state,
    place.shelf,
    job.name,
    job.queue,
    job.delivery,
    job.priority,
    runAt,
    job.fireAt?.getTime() ?? runAt,
    now,
    job.attempts,
    job.maxCrashes,
    job.slot,
    job.expireInMs === null ? null : Math.trunc(runAt + job.expireInMs),
    job.relayed ? 1 : 0,
    place.lane,
    job.concurrencyKey,
    job.rateKey,
    job.unique?.key ?? null,
    job.unique === null || job.unique.forMs === null ? null : Math.trunc(job.unique.forMs),
    job.debounce?.key ?? null,
    job.afterFailure,
    job.schedule,
    JSON.stringify(job.tags),
    job.input,
  );
}

function dueAt(job: NewJob, now: number): number {
  if (job.debounce !== null) return now + job.debounce.waitMs;
  return job.runAt?.getTime() ?? now + job.delayMs;
}

/** The first waiting, never claimed job with the key. */
function debounceTarget(session: Session, job: NewJob): number | null {
  if (job.debounce === null) return null;
  const row = session.connection.get(
    `select seq from escapement_jobs indexed by escapement_jobs_debounce
     where ns = ? and debounce_key = ? and debounce_key is not null and state = 'waiting' and token = 0
     order by seq limit 1`,
    session.ns,
    job.debounce.key,
  );
  return row === undefined ? null : numberOf(row["seq"]);
}

function debounce(session: Session, job: NewJob, seq: number): void {
  if (job.debounce === null) return;
  const { now } = session;
  const { waitMs, maxMs } = job.debounce;
  const target = findBySeq(session, seq);
  if (target === null) return;
  const latest = maxMs === null ? Number.POSITIVE_INFINITY : target.enqueuedAt + maxMs;
  changeIdle(session, target, {
    runAt: Math.trunc(Math.min(now + waitMs, latest)),
    input: job.input,
    priority: target.priority,
    concurrencyKey: job.concurrencyKey,
    rateKey: job.rateKey,
    retimed: true,
  });
}
