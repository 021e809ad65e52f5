import type { SQLInputValue } from "node:sqlite";
import { neverAhead } from "../../../state.ts";
import type { NewJob } from "../../../store/jobs.ts";
import { laneOf } from "../../lane.ts";
import type { Session } from "../session.ts";
import { place, placeBlocked } from "./places.ts";

/** Whether it is like most jobs: due at some time, without any rare feature. */
export function isPlain(job: NewJob): boolean {
  return (
    job.concurrencyKey === null &&
    job.rateKey === null &&
    job.unique === null &&
    job.debounce === null &&
    job.expireInMs === null &&
    job.schedule === null &&
    job.retention === null &&
    job.after.length === 0 &&
    job.tags.length === 0 &&
    job.afterFailure === "cancel" &&
    !job.relayed
  );
}

/** Jobs of one call are mostly alike: common values are bound once; only id, slot and input are bound for each. */
const insertPlainRows = (rows: number): string =>
  `insert into escapement_jobs (
     ns, id, name, queue, delivery, priority, run_at, fire_at, enqueued_at, attempts, max_crashes, slot, input
   ) select ns, column1, name, queue, delivery, priority, run_at, fire_at, enqueued_at, attempts, max_crashes, column2, column3
   from (select ? as ns, ? as name, ? as queue, ? as delivery, ? as priority, ? as run_at, ? as fire_at, ? as enqueued_at,
     ? as attempts, ? as max_crashes)
   cross join (values ${Array.from({ length: rows }, () => "(?, ?, ?)").join(", ")})`;

/** How many rows one statement writes; each call has a fixed cost. */
const maxAlike = 100;
const insertOnePlain = { rows: 1, sql: insertPlainRows(1) };
const insertPlainBy = [maxAlike, 10].map((rows) => ({ rows, sql: insertPlainRows(rows) }));

const added = "from escapement_jobs where seq > ? and seq <= ?";
const openAdded = `insert into escapement_open (seq, ns) select seq, ns ${added}`;
const shelveAdded = `insert into escapement_plain (ns, queue, name, priority, run_at, seq, direct)
  select ns, queue, name, priority, run_at, seq, delivery in (${neverAhead.map((delivery) => `'${delivery}'`).join(", ")}) ${added}`;

/** Inserts plain jobs whose ids are known to be new. No other connection writes in the meantime, so their numbers are consecutive. */
export function insertPlain(session: Session, jobs: readonly NewJob[]): void {
  const { connection, notices } = session;
  let last = 0;
  for (let start = 0; start < jobs.length; ) {
    const end = endOfAlike(jobs, start);
    const { rows, sql } = insertPlainBy.find((one) => one.rows <= end - start) ?? insertOnePlain;
    last = connection.insert(sql, ...valuesOf(session, jobs.slice(start, start + rows)));
    start += rows;
  }
  connection.run(openAdded, last - jobs.length, last);
  connection.run(shelveAdded, last - jobs.length, last);
  for (const job of jobs) notices.claimable(job.queue);
}

/** The end of the jobs that are like the first, up to the size of one statement. */
function endOfAlike(jobs: readonly NewJob[], start: number): number {
  const first = jobs[start];
  let end = start + 1;
  for (let job = jobs[end]; job !== undefined && end - start < maxAlike; job = jobs[end]) {
    if (first === undefined || !areAlike(first, job)) break;
    end += 1;
  }
  return end;
}

function areAlike(a: NewJob, b: NewJob): boolean {
  return (
    a.name === b.name &&
    a.queue === b.queue &&
    a.delivery === b.delivery &&
    a.priority === b.priority &&
    a.runAt?.getTime() === b.runAt?.getTime() &&
    a.fireAt?.getTime() === b.fireAt?.getTime() &&
    a.delayMs === b.delayMs &&
    a.attempts === b.attempts &&
    a.maxCrashes === b.maxCrashes
  );
}

function valuesOf({ ns, now }: Session, jobs: readonly NewJob[]): SQLInputValue[] {
  const values: SQLInputValue[] = [];
  const [first] = jobs;
  if (first === undefined) return values;
  const runAt = dueAt(first, now);
  const fireAt = first.fireAt?.getTime() ?? runAt;
  values.push(ns, first.name, first.queue, first.delivery, first.priority, runAt, fireAt, now);
  values.push(first.attempts, first.maxCrashes);
  for (const { id, slot, input } of jobs) values.push(id, slot, input);
  return values;
}

const insertJob = `insert into escapement_jobs (
    ns, id, blocked, name, queue, delivery, priority, run_at, fire_at, enqueued_at, attempts, max_crashes, slot,
    expire_at, relayed, lane, concurrency_key, rate_key, unique_key, unique_ms, debounce_key, after_failure, schedule,
    retention, tags, input
  ) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

/** Inserts a job of any kind whose id is known to be new. */
export function insert(session: Session, job: NewJob, state: "waiting" | "blocked"): void {
  const { connection, ns, now } = session;
  const runAt = dueAt(job, now);
  const lane = laneOf(job);
  const expireAt = job.expireInMs === null ? null : Math.trunc(runAt + job.expireInMs);
  const debounceKey = job.debounce?.key ?? null;
  const seq = connection.insert(
    insertJob,
    ns,
    job.id,
    state === "blocked" ? 1 : 0,
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
    expireAt,
    job.relayed ? 1 : 0,
    lane,
    job.concurrencyKey,
    job.rateKey,
    job.unique?.key ?? null,
    job.unique === null || job.unique.forMs === null ? null : Math.trunc(job.unique.forMs),
    debounceKey,
    job.afterFailure === "run" ? "run" : null,
    job.schedule,
    retentionOf(job),
    JSON.stringify(job.tags),
    job.input,
  );
  connection.run(openOne, seq, ns);
  const fresh = { attempt: 0, crashes: 0, token: 0, ahead: false } as const;
  if (state === "blocked") placeBlocked(session, { seq, expireAt });
  else place(session, { ...job, ...fresh, seq, runAt, lane, expireAt, debounceKey });
}

const openOne = "insert into escapement_open (seq, ns) values (?, ?)";

function retentionOf({ retention }: NewJob): string | null {
  if (retention === null) return null;
  const { succeededMs, cancelledMs, deadMs, lostMs } = retention;
  const kept = [succeededMs, cancelledMs, deadMs, lostMs];
  return JSON.stringify(kept.map((ms) => (ms === null ? null : Math.trunc(ms))));
}

function dueAt(job: NewJob, now: number): number {
  if (job.debounce !== null) return Math.trunc(now + job.debounce.waitMs);
  return Math.trunc(job.runAt?.getTime() ?? now + job.delayMs);
}
