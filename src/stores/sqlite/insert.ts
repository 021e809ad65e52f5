import type { SQLInputValue } from "node:sqlite";
import type { NewJob } from "../../store.ts";
import { laneOf } from "./jobs.ts";
import { place, placeBlocked } from "./places.ts";
import type { Session } from "./session.ts";

/** How many rows one statement writes: each call has a price of its own. */
const rowsAtOnce = 20;

/** Whether it is like most jobs: due some time, without any of the rarer things. */
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

const plainRow = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

const insertPlainRows = (rows: number): string =>
  `insert into escapement_jobs (
     ns, id, name, queue, delivery, priority, run_at, fire_at, enqueued_at, attempts, max_crashes, slot, input
   ) values ${Array.from({ length: rows }, () => plainRow).join(", ")}`;

const insertOnePlain = insertPlainRows(1);
const insertManyPlain = insertPlainRows(rowsAtOnce);

const added = "from escapement_jobs where seq > ? and seq <= ?";
const openAdded = `insert into escapement_open (seq, ns) select seq, ns ${added}`;
const shelveAdded = `insert into escapement_plain (ns, queue, name, priority, run_at, seq, direct)
  select ns, queue, name, priority, run_at, seq, delivery = 'at-most-once' ${added}`;

/** Inserts plain jobs whose ids are known to be new. Nobody else writes meanwhile, so their numbers follow each other. */
export function insertPlain(session: Session, jobs: readonly NewJob[]): void {
  const { connection, notices } = session;
  let last = 0;
  const many = jobs.length - (jobs.length % rowsAtOnce);
  for (let start = 0; start < many; start += rowsAtOnce) {
    const values: SQLInputValue[] = [];
    for (const job of jobs.slice(start, start + rowsAtOnce)) pushPlain(values, session, job);
    last = connection.insert(insertManyPlain, ...values);
  }
  for (const job of jobs.slice(many)) {
    const values: SQLInputValue[] = [];
    pushPlain(values, session, job);
    last = connection.insert(insertOnePlain, ...values);
  }
  connection.run(openAdded, last - jobs.length, last);
  connection.run(shelveAdded, last - jobs.length, last);
  for (const job of jobs) notices.claimable(job.queue);
}

function pushPlain(values: SQLInputValue[], { ns, now }: Session, job: NewJob): void {
  const runAt = dueAt(job, now);
  const fireAt = job.fireAt?.getTime() ?? runAt;
  values.push(ns, job.id, job.name, job.queue, job.delivery, job.priority, runAt, fireAt, now);
  values.push(job.attempts, job.maxCrashes, job.slot, job.input);
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
  const lane = laneOf(job.concurrencyKey, job.rateKey);
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
