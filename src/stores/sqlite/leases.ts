import type { ExtendParams, ExtendResult, ReapParams, ReapResult, ReportParams } from "../../store.ts";
import { cancelIdle, settleClaim } from "./end.ts";
import { isHeldBy } from "./finish.ts";
import { findBySeq, findJob, type JobRow } from "./jobs.ts";
import { numberOf } from "./rows.ts";
import type { Session } from "./session.ts";
import { tell } from "./trail.ts";

const extendLease = `update escapement_jobs set lease_boot = ?, lease_until = ?
  where ns = ? and id = ? and token = ? and claimer = ? and state = 'active' and relayed = 0
  returning cancel_requested`;

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

/** Claims whose lease ran out, by the monotonic clock; one of another boot has, whatever it says. */
const silent = `select seq from escapement_jobs
  where ns = ? and state = 'active' and relayed = 0 and (lease_boot <> ? or lease_until <= ?)
  order by lease_until, seq limit +?`;

const expired = `select seq from escapement_jobs
  where ns = ? and expire_at is not null and attempt = 0 and state in ('waiting', 'blocked') and expire_at <= ?
  order by expire_at, seq limit +?`;

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
      if (job !== null && end !== null) reaped.push({ id: job.id, name: job.name, queue: job.queue, ...end });
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

function endSilent(
  session: Session,
  job: JobRow,
): Pick<ReapResult["reaped"][number], "state" | "reason"> | null {
  if (job.state === "active") {
    const { state, reason } = settleClaim(
      session,
      job,
      { kind: "crash", reason: "its lease ran out" },
      false,
    );
    return { state, reason };
  }
  // The end of another one may have ended it in the meantime.
  if (job.state !== "waiting" && job.state !== "blocked") return null;
  cancelIdle(session, job, "expire", "expired");
  return { state: "cancelled", reason: "expired" };
}
