import { isIdle } from "../../state.ts";
import type { UpdateParams, UpdateResult } from "../../store/jobs.ts";
import { laneOf } from "../lane.ts";
import { risen } from "../risen.ts";
import { fixed, sql } from "./connection/sql.ts";
import { expireLater } from "./jobs/expiring.ts";
import { type JobRow, resolveJob, standing } from "./jobs/find.ts";
import { tell } from "./jobs/trail.ts";
import { laneChanged, leaveLane, waitAgain } from "./limits/lane-jobs.ts";
import type { Session } from "./session.ts";

export async function update(session: Session, params: UpdateParams): Promise<UpdateResult> {
  const job = await resolveJob(session, params.id);
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
  const { link } = session;
  const { runAt, priority, concurrencyKey, rateKey } = change;
  const lane = laneOf({ concurrencyKey, rateKey });
  const edited = { ...job, runAt, priority, lane };
  const expireAt = job.expireAt === null ? null : job.expireAt + runAt - job.runAt;
  link.write(
    sql`update escapement_jobs set ${standing(session, job.state, edited, 0)}, run_at = ${runAt},
        fire_at = ${change.retimed && job.schedule === null ? runAt : job.fireAt}, expire_at = ${expireAt},
        priority = ${priority}, concurrency_key = ${concurrencyKey}, rate_key = ${rateKey},
        input = coalesce(${change.input}, input), version = ${fixed(risen("least", "version"))}
      where seq = ${job.seq}`,
  );
  session.changed.add(job.seq);
  if (expireAt !== null && expireAt !== job.expireAt) expireLater(session, job.seq, expireAt);
  if (job.state !== "waiting") return;
  session.notices.claimable(job.queue);
  if (job.relayed) return;
  if (job.lane !== null && lane === null) leaveLane(session, job);
  laneChanged(session, job.lane);
  if (lane !== null) waitAgain(session, edited, job.crashes, runAt);
}
