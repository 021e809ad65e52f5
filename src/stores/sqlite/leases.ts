import { expiredReason, silence } from "../../state.ts";
import type { ExtendParams, ExtendResult, ReportParams } from "../../store/claims.ts";
import type { ReapParams, ReapResult } from "../../store/reaping.ts";
import { cancelIdle, settleClaim } from "./end.ts";
import { isHeldBy } from "./finish.ts";
import { findBySeq, findJob, type JobRow } from "./jobs/find.ts";
import { tell } from "./jobs/trail.ts";
import { numberOf } from "./rows.ts";
import type { Session } from "./session.ts";

const extendLease = `update escapement_active set lease_boot = ?, lease_until = ?, ahead = 0
  where seq = (select seq from escapement_jobs where ns = ? and id = ?) and token = ? and claimer = ? and relayed = 0
  returning (select cancel_requested from escapement_jobs as job where job.seq = escapement_active.seq) as cancel_requested`;

export function extend(session: Session, params: ExtendParams): ExtendResult[] {
  const until = Math.ceil(session.monotonic + params.leaseMs);
  return params.claims.map(({ id, token }) => {
    const { connection, boot, ns } = session;
    const row = connection.get(extendLease, boot, until, ns, id, token, params.claimer);
    if (row === undefined) return { outcome: "stale", cancelRequested: false };
    return { outcome: "extended", cancelRequested: row["cancel_requested"] !== 0 };
  });
}

export function report(session: Session, params: ReportParams): void {
  for (const { id, token, progress, lines } of params.reports) {
    const job = findJob(session, id);
    if (job === null || job.relayed || !isHeldBy(job, params.claimer, token)) continue;
    if (progress !== undefined) {
      session.connection.run("update escapement_jobs set progress = ? where seq = ?", progress, job.seq);
    }
    for (const line of lines) tell(session, job, "log", line);
  }
}

/** Claims whose lease ran out, by the monotonic clock; a lease of another boot has run out, whatever it says. */
const silent = `select seq from escapement_active
  where ns = ? and relayed = 0 and (lease_boot <> ? or lease_until <= ?)
  order by lease_until, seq limit +?`;

const expired = `select seq from escapement_untried
  where ns = ? and expire_at is not null and expire_at <= ? order by expire_at, seq limit +?`;

export function reap(session: Session, { limit, until }: ReapParams): ReapResult {
  const { monotonic } = session;
  const silentBy = Math.min(monotonic, until ?? monotonic);
  const reaped: ReapResult["reaped"][number][] = [];
  while (reaped.length < limit) {
    const jobs = nextToReap(session, silentBy, limit - reaped.length);
    if (jobs.length === 0) break;
    for (const seq of jobs) {
      const job = findBySeq(session, seq);
      const end = job === null ? null : endSilent(session, job);
      if (job === null || end === null) dropStray(session, seq);
      else reaped.push({ id: job.id, name: job.name, queue: job.queue, ...end });
    }
  }
  return { reaped, more: nextToReap(session, monotonic, 1).length > 0, mark: monotonic };
}

function nextToReap({ connection, ns, boot, now }: Session, silentBy: number, limit: number): number[] {
  const rows = connection.all(silent, ns, boot, silentBy, limit);
  const left = limit - rows.length;
  if (left > 0) rows.push(...connection.all(expired, ns, now, left));
  return rows.map((row) => numberOf(row["seq"]));
}

/** Another program has written to it: the row that says it is active, or idle, is wrong, and must not be found again and again. */
function dropStray({ connection }: Session, seq: number): void {
  const job = "(select state from escapement_all_jobs as job where job.seq = ?)";
  connection.run(`delete from escapement_active where seq = ? and ${job} is not 'active'`, seq, seq);
  connection.run(
    `delete from escapement_untried where seq = ? and coalesce(${job}, '') not in ('waiting', 'blocked')`,
    seq,
    seq,
  );
}

function endSilent(
  session: Session,
  job: JobRow,
): Pick<ReapResult["reaped"][number], "state" | "reason"> | null {
  if (job.state === "active") {
    const { state, reason } = settleClaim(session, job, silence(job), false);
    return { state, reason };
  }
  // The end of another job may have ended it in the meantime.
  if (job.state !== "waiting" && job.state !== "blocked") return null;
  cancelIdle(session, job, "expire", expiredReason);
  return { state: "cancelled", reason: expiredReason };
}
