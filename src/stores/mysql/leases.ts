import { expiredReason, isIdle, isTerminal, silence } from "../../state.ts";
import type { ClaimRef, ExtendParams, ExtendResult, Report, ReportParams } from "../../store/claims.ts";
import type { ReapParams, ReapResult } from "../../store/reaping.ts";
import { fixed, now, type Sql, sql } from "./connection/sql.ts";
import { adoptChildren, cancelIdle, settleClaim, tellChildren } from "./end.ts";
import { isHeldBy } from "./finish.ts";
import { strike } from "./jobs/expiring.ts";
import { type JobRow, lockBySeq, lockJobs } from "./jobs/find.ts";
import { tell } from "./jobs/trail.ts";
import { numberOf, textOf } from "./rows.ts";
import type { Session } from "./session.ts";

/** One trip: renews what still belongs to the claimer and is not locked by another transaction, then reads which claims those are. */
export async function extend(session: Session, params: ExtendParams): Promise<ExtendResult[]> {
  const { link, ns } = session;
  if (params.claims.length === 0) return [];
  const ids = [...new Set(params.claims.map(({ id }) => id))];
  const held = sql`ns = ${ns} and id in (${ids}) and state = 'active' and relayed = 0
    and claimer = ${session.claimers.of(params.claimer)}`;
  const leaseMs = Math.ceil(params.leaseMs);
  renew(session, sql`${held} and (${named(params.claims)})`, leaseMs);
  const answer = link.query(
    sql`select id, token, cancel_requested, at >= ${now} + ${leaseMs}
      from escapement_jobs force index (escapement_jobs_id) where ${held}`,
  );
  session.commit();
  const { rows } = await answer;
  const found = new Map<string, ExtendResult>(
    rows.map((row) => [
      `${numberOf(row[1])} ${textOf(row[0])}`,
      { outcome: numberOf(row[3]) !== 0 ? "extended" : "locked", cancelRequested: numberOf(row[2]) !== 0 },
    ]),
  );
  return params.claims.map(
    ({ id, token }) => found.get(`${token} ${id}`) ?? { outcome: "stale", cancelRequested: false },
  );
}

function named(claims: readonly ClaimRef[]): Sql {
  const tokens = new Map<number, string[]>();
  for (const { id, token } of claims) tokens.set(token, [...(tokens.get(token) ?? []), id]);
  const terms = [...tokens].map(([token, own]) => sql`(token = ${token} and id in (${own}))`);
  return terms.reduce((all, term) => sql`${all} or ${term}`);
}

/**
 * Only a plain `select` can skip locked rows, so its result goes into a second statement, on the server: a process suspended
 * between two trips would keep the locks of all its claims.
 */
function renew({ link, skipLocked }: Session, claims: Sql, leaseMs: number): void {
  if (!skipLocked) {
    link.write(
      sql`update escapement_jobs force index (escapement_jobs_id) set at = ${now} + ${leaseMs}, ahead = 0 where ${claims}`,
    );
    return;
  }
  link.write(
    sql`select json_arrayagg(seq) into @escapement_free from escapement_jobs force index (escapement_jobs_id)
      where ${claims} for update skip locked`,
  );
  link.write(
    sql`set @escapement_renew = concat('update escapement_jobs set ahead = 0, at = ${now} + ', ${leaseMs}, ' where seq in (',
      coalesce(trim(trailing ']' from trim(leading '[' from @escapement_free)), 'null'), ')')`,
  );
  link.write(sql`prepare escapement_renewal from @escapement_renew`);
  link.write(sql`execute escapement_renewal`);
  link.write(sql`deallocate prepare escapement_renewal`);
}

export async function report(session: Session, params: ReportParams): Promise<void> {
  const claimer = session.claimers.of(params.claimer);
  const jobs = await lockJobs(session, [...new Set(params.reports.map(({ id }) => id))]);
  for (const { id, token, ...reported } of params.reports) {
    const job = jobs.get(id);
    if (job === undefined || job.relayed || !isHeldBy(job, claimer, token)) continue;
    writeReport(session, job, reported);
  }
}

/** The job is locked. */
export function writeReport(session: Session, job: JobRow, { progress, lines }: Report): void {
  if (progress !== undefined) {
    session.link.write(sql`update escapement_jobs set progress = ${progress} where seq = ${job.seq}`);
  }
  for (const line of lines) tell(session, job, "log", line);
}

export async function reap(session: Session, { limit, until }: ReapParams): Promise<ReapResult> {
  const reaped: ReapResult["reaped"][number][] = [];
  const [marked] = await Promise.all([
    session.link.query(sql`select ${now}`),
    session.lines.refresh(session.link),
  ]);
  const mark = numberOf(marked.rows[0]?.[0]);
  const silentBy = Math.min(mark, Math.floor(until ?? mark));
  await adoptChildren(session);
  while (reaped.length < limit) {
    session.changed.clear();
    const jobs = await nextToReap(session, silentBy, limit - reaped.length);
    if (jobs.length === 0) break;
    const parents = await parentsAmong(session, jobs);
    for (const job of jobs) {
      // The end of another job may have ended it in the meantime.
      if (session.changed.has(job.seq)) continue;
      const { state, reason } = endSilent(session, job);
      reaped.push({ id: job.id, name: job.name, queue: job.queue, state, reason });
      if (!isTerminal(state)) continue;
      if (parents.has(job.seq)) await tellChildren(session, [{ seq: job.seq, id: job.id, state }]);
      else session.notices.ended(job.id);
    }
  }
  return { reaped, more: (await nextToReap(session, mark, 1)).length > 0, mark };
}

async function parentsAmong({ link }: Session, jobs: readonly JobRow[]): Promise<Set<number>> {
  const { rows } = await link.query(
    sql`select distinct parent from escapement_parents where parent in (${jobs.map(({ seq }) => seq)})`,
  );
  return new Set(rows.map((row) => numberOf(row[0])));
}

/** Claims whose lease ran out, then jobs that expired, all locked: the condition is checked again on the locked row. */
async function nextToReap(session: Session, silentBy: number, limit: number): Promise<JobRow[]> {
  const jobs = await lockSilent(session, silentBy, await listSilent(session, silentBy, limit));
  if (jobs.length < limit) jobs.push(...(await nextToExpire(session, limit - jobs.length)));
  return jobs;
}

/**
 * Without locks: a locking range read also locks the first row after the range, which may be the first waiting job, and hides it from
 * claims in the meantime.
 */
async function listSilent({ link, lines }: Session, silentBy: number, limit: number): Promise<number[]> {
  const { rows } = await link.query(
    sql`select seq from escapement_jobs force index (escapement_jobs_line)
      where line in (${lines.active}) and urgency = 0 and at <= ${silentBy} order by at, seq limit ${limit}`,
  );
  return rows.map((row) => numberOf(row[0]));
}

async function lockSilent(session: Session, silentBy: number, listed: readonly number[]): Promise<JobRow[]> {
  if (listed.length === 0) return [];
  const { link, lines, skipLocked } = session;
  const lock = fixed(skipLocked ? "for update skip locked" : "for update");
  const { rows } = await link.query(
    sql`select seq from escapement_jobs force index (primary)
      where seq in (${[...listed]}) and line in (${lines.active}) and at <= ${silentBy} order by seq ${lock}`,
  );
  const seqs = new Set(rows.map((row) => numberOf(row[0])));
  const silent = await lockBySeq(session, [...seqs]);
  return listed.flatMap((seq) => silent.get(seq) ?? []);
}

/** Minimum number of list rows read together. */
const minListed = 100;

async function nextToExpire(session: Session, limit: number): Promise<JobRow[]> {
  const { link, ns } = session;
  for (;;) {
    const { rows } = await link.query(
      sql`select expire_at, job from escapement_expiring where ns = ${ns} and expire_at <= ${now}
        order by expire_at, job limit ${Math.max(limit, minListed)}`,
    );
    if (rows.length === 0) return [];
    const listed = rows.map((row) => ({ expireAt: numberOf(row[0]), seq: numberOf(row[1]) }));
    const found = await lockBySeq(
      session,
      listed.map(({ seq }) => seq),
    );
    const isExpired = (job: JobRow | undefined, expireAt: number): job is JobRow =>
      job !== undefined && job.attempt === 0 && job.expireAt === expireAt && isIdle(job.state);
    const expired = listed.flatMap(({ seq, expireAt }) => {
      const job = found.get(seq);
      return isExpired(job, expireAt) ? [job] : [];
    });
    const over = listed.filter(({ seq, expireAt }) => !isExpired(found.get(seq), expireAt));
    for (const { seq, expireAt } of over) strike(session, seq, expireAt);
    // Entries that were only struck off the list make room for others.
    if (expired.length > 0) return expired.slice(0, limit);
  }
}

function endSilent(session: Session, job: JobRow): Pick<ReapResult["reaped"][number], "state" | "reason"> {
  if (job.state === "active") {
    return settleClaim(session, job, silence(job), false);
  }
  if (job.expireAt !== null) strike(session, job.seq, job.expireAt);
  return { state: cancelIdle(session, job, "expire", expiredReason).state, reason: expiredReason };
}
