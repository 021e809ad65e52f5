import { isOrphan, isTerminal, orphanReason } from "../../state.ts";
import type { EnqueueResult, NewJob } from "../../store/jobs.ts";
import { changeIdle } from "./change.ts";
import { cancelIdle } from "./end.ts";
import { findBySeq, findJob, type JobRow, resolveJob } from "./jobs/find.ts";
import { insert, insertPlain, isPlain } from "./jobs/insert.ts";
import { takeUniqueKey, uniqueHolder } from "./jobs/unique.ts";
import { numberOf, textOf } from "./rows.ts";
import type { Session } from "./session.ts";

/** Maximum number of plain jobs that are looked up and written together. */
const maxRun = 1_000;

/** Enqueues a batch in order. Plain jobs, which depend on nothing else, are written together. */
export function enqueue(session: Session, jobs: readonly NewJob[]): EnqueueResult[] {
  const results: EnqueueResult[] = [];
  for (let index = 0; index < jobs.length; ) {
    const run = plainRun(jobs, index);
    if (run.length > 0) {
      results.push(...enqueuePlain(session, run));
      index += run.length;
    } else {
      const job = jobs[index];
      if (job !== undefined) results.push(enqueueOne(session, job));
      index += 1;
    }
  }
  return results;
}

function plainRun(jobs: readonly NewJob[], start: number): readonly NewJob[] {
  let end = start;
  for (let job = jobs[end]; job !== undefined && end - start < maxRun && isPlain(job); job = jobs[end])
    end += 1;
  return jobs.slice(start, end);
}

function enqueuePlain(session: Session, jobs: readonly NewJob[]): EnqueueResult[] {
  if (areBeyond(session, jobs)) {
    insertPlain(session, jobs);
    return jobs.map(({ id }) => ({ id, outcome: "added" }));
  }
  const known = resolveAll(session, jobs);
  const added: NewJob[] = [];
  const results = jobs.map(({ id }, index): EnqueueResult => {
    const existing = known.get(id);
    if (existing !== undefined) return { id: existing, outcome: "existing" };
    known.set(id, id);
    const job = jobs[index];
    if (job !== undefined) added.push(job);
    return { id, outcome: "added" };
  });
  if (added.length > 0) insertPlain(session, added);
  return results;
}

const knownIds = `with asked as materialized (select value as wanted from json_each(?))
  select wanted, wanted as id from asked where exists (select 1 from escapement_jobs where ns = ? and id = wanted)
  union all
  select wanted, job.id from asked
    cross join escapement_aliases as alias on alias.ns = ? and alias.id = wanted
    cross join escapement_jobs as job on job.seq = alias.job`;

const isBeyond = `select not exists (select 1 from escapement_jobs where ns = ? and id >= ?)
  and not exists (select 1 from escapement_aliases where ns = ? and id >= ?) as beyond`;

/**
 * Whether the ids rise, and begin behind every id that is known: those that this library makes mostly do, and then need not be looked up one by one.
 * Only of ASCII is it known here in which order the database has them.
 */
function areBeyond({ connection, ns }: Session, jobs: readonly NewJob[]): boolean {
  const first = jobs[0]?.id ?? "";
  let last = "";
  for (const { id } of jobs) {
    if (id <= last || !/^[ -~]+$/.test(id)) return false;
    last = id;
  }
  return connection.get(isBeyond, ns, first, ns, first)?.["beyond"] === 1;
}

/** The ids that are already known, each with the id of the job that it refers to. */
function resolveAll({ connection, ns }: Session, jobs: readonly NewJob[]): Map<string, string> {
  const rows = connection.all(knownIds, JSON.stringify(jobs.map(({ id }) => id)), ns, ns);
  return new Map(rows.map((row) => [textOf(row["wanted"]), textOf(row["id"])]));
}

function enqueueOne(session: Session, job: NewJob): EnqueueResult {
  const known = resolveJob(session, job.id);
  if (known !== null) return { id: known.id, outcome: "existing" };
  if (job.unique !== null || job.debounce !== null || job.after.length > 0) return enqueueBound(session, job);
  insert(session, job, "waiting");
  return { id: job.id, outcome: "added" };
}

/** A job with parents or with a key that other jobs may hold. */
function enqueueBound(session: Session, job: NewJob): EnqueueResult {
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
  return { id: findBySeq(session, target)?.id ?? job.id, outcome };
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
  if (failed !== undefined && isOrphan(job, failed.state)) {
    cancelIdle(session, row, "cancel", orphanReason(failed));
  }
}

/** The first waiting, never claimed job with the key. */
function debounceTarget(session: Session, job: NewJob): number | null {
  if (job.debounce === null) return null;
  const row = session.connection.get(
    `select seq from escapement_untried indexed by escapement_untried_debounce
     where ns = ? and debounce_key = ? and debounce_key is not null order by seq limit 1`,
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
