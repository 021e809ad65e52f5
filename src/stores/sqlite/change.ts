import { isIdle } from "../../state.ts";
import type { UpdateParams, UpdateResult } from "../../store/jobs.ts";
import { laneOf } from "../lane.ts";
import { risen } from "../risen.ts";
import { type JobRow, resolveJob } from "./jobs/find.ts";
import { displace, place, placeBlocked } from "./jobs/places.ts";
import { tell } from "./jobs/trail.ts";
import { openChanged } from "./limits/gates.ts";
import type { Session } from "./session.ts";

export function update(session: Session, params: UpdateParams): UpdateResult {
  const job = resolveJob(session, params.id);
  if (job === null) return { outcome: "unknown", state: null };
  if (!isIdle(job.state)) return { outcome: "refused", state: job.state };
  tell(session, job, "updated", null);
  const delayed = params.delayMs === undefined ? job.runAt : session.now + params.delayMs;
  changeIdle(session, job, {
    runAt: Math.trunc(params.runAt?.getTime() ?? delayed),
    input: params.input ?? null,
    priority: params.priority ?? job.priority,
    concurrencyKey: params.concurrencyKey === undefined ? job.concurrencyKey : params.concurrencyKey,
    rateKey: params.rateKey === undefined ? job.rateKey : params.rateKey,
    retimed: params.runAt !== undefined || params.delayMs !== undefined,
  });
  return { outcome: "updated", state: job.state };
}

export interface IdleChange {
  readonly runAt: number;
  /** Null leaves it as it is. */
  readonly input: string | null;
  readonly priority: number;
  readonly concurrencyKey: string | null;
  readonly rateKey: string | null;
  /** Whether a time was given: then the nominal time moves to it, except for occurrences, and an expiry moves with it. */
  readonly retimed: boolean;
}

/** Writes an edit of a waiting or blocked job, and raises its version. */
export function changeIdle(session: Session, job: JobRow, change: IdleChange): void {
  const lane = laneOf(change);
  const expireAt = job.expireAt === null ? null : job.expireAt + change.runAt - job.runAt;
  displace(session, job);
  session.connection.run(
    `update escapement_jobs set run_at = ?, fire_at = ?, expire_at = ?, priority = ?, lane = ?,
       concurrency_key = ?, rate_key = ?, input = coalesce(?, input), version = ${risen("min", "version")}
     where seq = ?`,
    change.runAt,
    change.retimed && job.schedule === null ? change.runAt : job.fireAt,
    expireAt,
    change.priority,
    lane,
    change.concurrencyKey,
    change.rateKey,
    change.input,
    job.seq,
  );
  if (job.state === "blocked") {
    placeBlocked(session, { ...job, expireAt });
    return;
  }
  if (job.lane !== null) openChanged(session, job.lane);
  const { runAt, priority, concurrencyKey, rateKey } = change;
  place(session, { ...job, runAt, expireAt, priority, lane, concurrencyKey, rateKey });
}
