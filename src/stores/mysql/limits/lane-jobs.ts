import { shelfOf } from "../../shelf.ts";
import { sql } from "../connection/sql.ts";
import type { JobRow } from "../jobs/find.ts";
import type { Session } from "../session.ts";

type Laned = Pick<JobRow, "seq" | "queue" | "name" | "priority" | "lane" | "relayed">;

/** A job started to wait in its lane, or its place in it changed. */
export function joinLane(session: Session, job: Laned, runAt: number): void {
  const { link, ns } = session;
  if (job.lane === null) return;
  link.write(
    sql`insert into escapement_lane_jobs (job, ns, place, lane, urgency, run_at, queue, name)
      values (${job.seq}, ${ns}, 'waiting', ${job.lane}, ${-job.priority}, ${runAt}, ${job.queue}, ${job.name})
      on duplicate key update place = 'waiting', lane = values(lane), urgency = values(urgency), run_at = values(run_at)`,
  );
  link.write(
    sql`insert into escapement_hints (ns, kind, lane, queue, name, at)
      values (${ns}, 'arrived', ${job.lane}, ${job.queue}, ${job.name}, ${runAt})`,
  );
}

/** A job has left its lane, and does not count for its key. */
export function leaveLane(session: Session, job: Pick<Laned, "seq" | "lane" | "relayed">): void {
  leaveLanes(session, [job]);
}

export function leaveLanes(
  { link }: Session,
  jobs: readonly Pick<Laned, "seq" | "lane" | "relayed">[],
): void {
  const seqs = jobs.filter(({ lane, relayed }) => lane !== null && !relayed).map(({ seq }) => seq);
  if (seqs.length > 0) link.write(sql`delete from escapement_lane_jobs where job in (${seqs})`);
}

/** A job that waits again is in its lane or, if it must run alone, in none. */
export function waitAgain(session: Session, job: JobRow, crashes: number, runAt: number): void {
  if (shelfOf({ ...job, crashes }) === "lane") joinLane(session, job, runAt);
  else leaveLane(session, job);
}

/** A job left the lane or changed its place: another may be first now. */
export function laneChanged({ link, ns }: Session, lane: string | null): void {
  if (lane === null) return;
  link.write(sql`insert into escapement_hints (ns, kind, lane) values (${ns}, 'changed', ${lane})`);
}

/** An active job with the lane's key ended: there may be room again. */
export function laneFreed({ link, ns }: Session, lane: string): void {
  link.write(sql`insert into escapement_hints (ns, kind, lane) values (${ns}, 'freed', ${lane})`);
}
