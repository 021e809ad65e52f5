import { isOrphan, isTerminal, orphanReason } from "../../state.ts";
import type { EnqueueResult, NewJob } from "../../store/jobs.ts";
import { perGroup } from "../kept-counts.ts";
import { changeIdle } from "./change.ts";
import { fixed, join, now, sql } from "./connection/sql.ts";
import { cancelIdle, type Ended, tellChildren } from "./end.ts";
import { isDuplicate } from "./errors.ts";
import { countAdded, writeCounts } from "./jobs/counts.ts";
import { type JobRow, lockBySeq, lockJobs, lookUp, resolveJob, shareJobs } from "./jobs/find.ts";
import { insertOne, insertStatements, isIndependent, writeCompanions } from "./jobs/insert.ts";
import { takeUniqueKey, uniqueHolder } from "./jobs/unique.ts";
import { numberOf, textOf } from "./rows.ts";
import type { Session } from "./session.ts";

/** Enqueues a batch in order. Jobs that depend on nothing but their ids are written together. */
export async function enqueue(
  session: Session,
  jobs: readonly NewJob[],
  tag: number,
): Promise<EnqueueResult[]> {
  const results: EnqueueResult[] = [];
  for (let index = 0; index < jobs.length; ) {
    const run = independentRun(jobs, index);
    if (run.length > 0) {
      const known = await addIndependent(session, run, tag + results.length);
      results.push(...resultsOf(run, known));
      index += run.length;
    } else {
      const job = jobs[index];
      if (job !== undefined) results.push(await enqueueBound(session, job));
      index += 1;
    }
  }
  return results;
}

function independentRun(jobs: readonly NewJob[], start: number): readonly NewJob[] {
  const end = jobs.findIndex((job, index) => index >= start && !isIndependent(job));
  return jobs.slice(start, end < 0 ? jobs.length : end);
}

/** Of jobs with the same id only the first is added. */
export function firstOfEach(jobs: readonly NewJob[]): readonly NewJob[] {
  const first = new Map<string, NewJob>();
  for (const job of jobs) if (!first.has(job.id)) first.set(job.id, job);
  return first.size === jobs.length ? jobs : [...first.values()];
}

/** @param known the ids that existed before, each with the id of the job that it refers to. */
export function resultsOf(
  jobs: readonly NewJob[],
  known: ReadonlyMap<string, string> | null,
): EnqueueResult[] {
  const added = new Set<string>();
  return jobs.map(({ id }) => {
    const existing = known?.get(id);
    if (existing !== undefined) return { id: existing, outcome: "existing" };
    if (added.has(id)) return { id, outcome: "existing" };
    added.add(id);
    return { id, outcome: "added" };
  });
}

/** Writes jobs that depend on nothing but their ids; returns those that existed before. */
async function addIndependent(
  session: Session,
  jobs: readonly NewJob[],
  tag: number,
): Promise<Map<string, string>> {
  const { link, notices } = session;
  const distinct = firstOfEach(jobs);
  // An insert locks an existing row in its way; a caller's transaction would hold that lock for too long.
  const before = session.foreign
    ? await lookUp(
        session,
        distinct.map(({ id }) => id),
      )
    : new Map<string, JobRow>();
  const fresh = distinct.filter(({ id }) => !before.has(id));
  const known = new Map([...before].map(([id, job]) => [id, job.id]));
  if (fresh.length === 0) return known;
  const inserts = insertStatements(session, fresh, tag).map(({ statement }) => link.query(statement));
  writeCompanions(session, fresh, sql`born = ${tag}`);
  for (const { queue } of fresh) notices.claimable(queue);
  const [faster, ...answers] = await Promise.all([knownBefore(session, fresh, tag), ...inserts]);
  countAdded(session, fresh, answers, tag, faster);
  return new Map([...known, ...faster]);
}

/** The ids whose job another call added. */
export async function knownBefore(
  { link, ns, foreign }: Session,
  jobs: readonly NewJob[],
  tag: number,
): Promise<Map<string, string>> {
  // A caller's transaction sees commits made after it began only in rows that it locks while reading.
  const lock = fixed(foreign ? "lock in share mode" : "");
  const ids = jobs.map(({ id }) => id);
  const { rows } = await link.query(
    sql`select a.id, coalesce(j.id, a.id) as stands_for from escapement_jobs as a force index (escapement_jobs_id)
      left join escapement_jobs as j on j.seq = a.stands_for
      where a.ns = ${ns} and a.id in (${ids}) and a.born <> ${tag} ${lock}`,
  );
  return new Map(rows.map((row) => [textOf(row[0]), textOf(row[1])]));
}

/** A job with parents, or with a key that other jobs may hold. */
async function enqueueBound(session: Session, job: NewJob): Promise<EnqueueResult> {
  const known = (await lookUp(session, [job.id])).get(job.id);
  if (known !== undefined) return { id: known.id, outcome: "existing" };
  const parents = await shareJobs(session, [...new Set(job.after)]);
  const missing = job.after.find((id) => !parents.has(id));
  if (missing !== undefined) return { id: job.id, outcome: "refused", parent: missing };
  try {
    return await place(session, job, parents);
  } catch (error) {
    if (!isDuplicate(error)) throw error;
    // Another call was faster with the same id.
    const faster = await resolveJob(session, job.id);
    return { id: faster?.id ?? job.id, outcome: "existing" };
  }
}

/** Adds the job, or makes its id an alias of another one. Fails if the id was taken in the meantime. */
async function place(
  session: Session,
  job: NewJob,
  parents: ReadonlyMap<string, JobRow>,
): Promise<EnqueueResult> {
  const holder = job.unique === null ? null : await uniqueHolder(session, job.unique.key);
  if (holder !== null) return absorb(session, job, holder, "absorbed");
  const earlier = await debounceTarget(session, job);
  if (earlier !== null) {
    const result = await absorb(session, job, earlier.seq, "debounced");
    debounce(session, job, earlier);
    return result;
  }
  await add(
    session,
    job,
    job.after.flatMap((id) => parents.get(id) ?? []),
  );
  return { id: job.id, outcome: "added" };
}

async function absorb(
  session: Session,
  job: NewJob,
  target: number,
  outcome: "absorbed" | "debounced",
): Promise<EnqueueResult> {
  const { link, ns, lines } = session;
  const { insertId } = await link.query(
    sql`insert into escapement_jobs (ns, id, state, line, at, born, run_at, fire_at, enqueued_at, priority, attempts, max_crashes,
        slot, delivery, name, queue, input, stands_for)
      values (${ns}, ${job.id}, 'alias', ${lines.common("alias")}, ${now}, 0, ${now}, ${now}, ${now}, 0, 0, 0, 0, 'at-least-once',
        '', '', '', ${target})`,
  );
  link.write(sql`insert into escapement_aliases (job, alias) values (${target}, ${insertId})`);
  return { id: await idOf(session, target), outcome };
}

async function idOf(session: Session, seq: number): Promise<string> {
  const statement = sql`select id from escapement_jobs where seq = ${seq}`;
  const committed = await session.peek(statement);
  const { rows } = committed.rows.length > 0 ? committed : await session.link.query(statement);
  return textOf(rows[0]?.[0]);
}

async function add(session: Session, job: NewJob, parents: readonly JobRow[]): Promise<void> {
  const { link, ns } = session;
  const open = [...new Set(parents.filter(({ state }) => !isTerminal(state)).map(({ seq }) => seq))];
  const state = open.length === 0 ? "waiting" : "blocked";
  const seq = await insertOne(session, job, state);
  writeCounts(session, "all", perGroup([job]), 0);
  writeCompanions(session, [job], sql`seq = ${seq}`);
  if (state === "waiting") session.notices.claimable(job.queue);
  if (job.unique !== null) {
    const { key, forMs } = job.unique;
    takeUniqueKey(session, key, seq, forMs === null ? null : session.now + Math.trunc(forMs));
  }
  if (job.debounce !== null) {
    link.write(
      sql`insert into escapement_debounce_keys (ns, debounce_key, job) values (${ns}, ${job.debounce.key}, ${seq})`,
    );
  }
  if (open.length > 0) {
    const edges = open.map((parent, position) => sql`(${parent}, ${seq}, ${position})`);
    link.write(sql`insert into escapement_parents (parent, child, position) values ${join(edges, ", ")}`);
    if (session.foreign) link.write(sql`insert into escapement_adoptions (ns, child) values (${ns}, ${seq})`);
  }
  await orphan(session, job, parents);
}

/** A parent that has already ended badly decides at once. */
async function orphan(session: Session, job: NewJob, parents: readonly JobRow[]): Promise<void> {
  const failed = parents.find(({ state }) => isTerminal(state) && state !== "succeeded");
  if (failed === undefined || !isOrphan(job, failed.state)) return;
  const row = (await lockJobs(session, [job.id])).get(job.id);
  if (row === undefined) return;
  const ended: Ended = cancelIdle(session, row, "cancel", orphanReason(failed));
  await tellChildren(session, [ended]);
}

/**
 * The first waiting, never claimed job with the key, under the key's lock. Uses the primary key only: otherwise a caller's transaction
 * would also lock gaps between the jobs of other keys.
 */
async function debounceTarget(session: Session, job: NewJob): Promise<JobRow | null> {
  if (job.debounce === null) return null;
  const { link, ns } = session;
  const { key } = job.debounce;
  link.write(
    sql`insert into escapement_debounce_keys (ns, debounce_key, job) values (${ns}, ${key}, 0) on duplicate key update job = 0`,
  );
  const { rows } = await link.query(
    sql`select job from escapement_debounce_keys force index (primary)
      where ns = ${ns} and debounce_key = ${key} and job > 0 order by job for update`,
  );
  const seqs = rows.map((row) => numberOf(row[0]));
  const jobs = await lockBySeq(session, seqs);
  const over = seqs.filter((seq) => isOver(jobs.get(seq)));
  if (over.length > 0) {
    link.write(
      sql`delete k from escapement_debounce_keys as k force index (primary)
        where ns = ${ns} and debounce_key = ${key} and job in (${over})`,
    );
  }
  return (
    seqs
      .flatMap((seq) => jobs.get(seq) ?? [])
      .find(({ state, token }) => state === "waiting" && token === 0) ?? null
  );
}

/** Whether a job can no longer be a debounce target: it was claimed, or ended without a claim. */
function isOver(job: JobRow | undefined): boolean {
  return job === undefined || job.token > 0 || isTerminal(job.state);
}

function debounce(session: Session, job: NewJob, target: JobRow): void {
  if (job.debounce === null) return;
  const { waitMs, maxMs } = job.debounce;
  const latest = maxMs === null ? Number.POSITIVE_INFINITY : target.enqueuedAt + maxMs;
  changeIdle(session, target, {
    runAt: Math.trunc(Math.min(session.now + waitMs, latest)),
    input: job.input,
    priority: target.priority,
    concurrencyKey: job.concurrencyKey,
    rateKey: job.rateKey,
    retimed: true,
  });
}
