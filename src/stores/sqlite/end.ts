import type { JobState } from "../../job.ts";
import {
  follow,
  isOrphan,
  isTerminal,
  maxCount,
  type Outcome,
  orphanReason,
  type Settlement,
  settle,
  story,
} from "../../state.ts";
import { laneOfKey } from "../lane.ts";
import { countEnded } from "./jobs/counts.ts";
import { findBySeq, type JobRow } from "./jobs/find.ts";
import { displace, place } from "./jobs/places.ts";
import { tell } from "./jobs/trail.ts";
import { openChanged, openSaturated } from "./limits/gates.ts";
import { numberOf } from "./rows.ts";
import type { Session } from "./session.ts";

const endJob = `insert into escapement_ended (
    seq, ns, state, finished_at, attempt, token, settled, claimer, claimed_at, reason, result, forget_at
  ) select seq, ns, ?, ?, attempt, token, settled, claimer, claimed_at, ?, ?,
    case when json_valid(retention) then ? + (retention ->> cast(? as integer)) end from escapement_jobs where seq = ?`;
const closeJob = "delete from escapement_open where seq = ?";

/** The positions of the states in a job's retention. */
const retentionPlaces: Readonly<Partial<Record<JobState, number>>> = {
  succeeded: 0,
  cancelled: 1,
  dead: 2,
  lost: 3,
};

/** Writes the end of a job, once its row holds what its last claim left. */
function end(
  session: Session,
  job: JobRow,
  {
    state,
    reason,
    result,
  }: { readonly state: JobState; readonly reason: string | null; readonly result: string | null },
): void {
  const { connection, now } = session;
  connection.run(endJob, state, now, reason, result, now, retentionPlaces[state] ?? 0, job.seq);
  connection.run(closeJob, job.seq);
  if (isTerminal(state)) countEnded(session, job, state, 1);
}

const deleteClaim = "delete from escapement_active where seq = ?";

/** This is the last chance to keep who settled an earlier claim. */
const writeSettlement = `update escapement_jobs set
    run_at = ?, attempt = ?, crashes = ?, rollbacks = min(rollbacks + ?, ${maxCount}), error = coalesce(?, error), reason = ?,
    token = ?, claimer = ?, claimed_at = ?, ahead = ?, settled = coalesce(?, settled),
    settled_by = case when ? or settled = 0 then null else coalesce(settled_by, claimer) end
  where seq = ?`;

/**
 * Ends a claim by its outcome: the core decides, this writes it down.
 *
 * @param byHolder whether the claim's holder reports it.
 */
export function settleClaim(session: Session, job: JobRow, outcome: Outcome, byHolder: boolean): Settlement {
  const { connection } = session;
  const settlement = settle(job, outcome);
  const { state, attempt, crashes } = settlement;
  const line = story(outcome);
  if (line !== null) tell(session, job, line.kind, line.text, line.error);
  const runAt = settlement.delayMs === null ? job.runAt : Math.trunc(session.now + settlement.delayMs);
  const ahead = job.ahead && !byHolder;
  connection.run(deleteClaim, job.seq);
  connection.run(
    writeSettlement,
    runAt,
    attempt,
    crashes,
    settlement.rollbacks,
    settlement.error,
    settlement.reason,
    job.token,
    job.claimer,
    job.claimedAt,
    ahead ? 1 : 0,
    byHolder ? job.token : null,
    byHolder ? 1 : 0,
    job.seq,
  );
  if (isTerminal(state)) {
    end(session, job, settlement);
    tellChildren(session, job, state);
  } else {
    place(session, { ...job, runAt, attempt, crashes, ahead });
  }
  noteFreed(session, [job]);
  return settlement;
}

/** Active jobs ended: jobs that their keys or queues held back may go. */
export function noteFreed(
  session: Session,
  jobs: readonly Pick<JobRow, "concurrencyKey" | "limited" | "queue" | "relayed">[],
): void {
  const keys = new Set<string>();
  for (const { relayed, limited, queue, concurrencyKey } of jobs) {
    if (relayed) continue;
    if (limited) session.notices.claimable(queue);
    if (concurrencyKey !== null) keys.add(concurrencyKey);
  }
  for (const key of keys) {
    openSaturated(session, laneOfKey(key));
    session.notices.claimableAnywhere();
  }
}

const unblock = "update escapement_jobs set blocked = 0 where seq = ?";

/** Cancels a job that is not claimed. */
export function cancelIdle(
  session: Session,
  job: JobRow,
  transition: "cancel" | "expire",
  reason: string | null,
): void {
  writeCancelled(session, job, transition, reason);
  tellChildren(session, job, "cancelled");
}

function writeCancelled(
  session: Session,
  job: JobRow,
  transition: "cancel" | "expire",
  reason: string | null,
): void {
  const { connection } = session;
  displace(session, job);
  if (job.state === "blocked") {
    connection.run("delete from escapement_parents where child = ?", job.seq);
    connection.run(unblock, job.seq);
  }
  end(session, job, { state: follow(job.state, transition), reason, result: null });
  if (job.state === "waiting" && job.lane !== null) openChanged(session, job.lane);
}

/** Passes the end of a job on to its children, and theirs to their children, without recursion. */
export function tellChildren(
  session: Session,
  ended: { readonly seq: number; readonly id: string },
  state: JobState,
): void {
  const { connection } = session;
  const parents = [{ seq: ended.seq, id: ended.id, state }];
  for (const parent of parents) {
    session.notices.ended(parent.id);
    const children = connection.all(
      "select child from escapement_parents where parent = ? order by child",
      parent.seq,
    );
    if (children.length > 0) connection.run("delete from escapement_parents where parent = ?", parent.seq);
    for (const row of children) {
      const child = findBySeq(session, numberOf(row["child"]));
      if (child !== null && hearEnd(session, child, parent)) {
        parents.push({ seq: child.seq, id: child.id, state: "cancelled" });
      }
    }
  }
}

/** Returns whether the child ended too. */
function hearEnd(
  session: Session,
  child: JobRow,
  parent: { readonly id: string; readonly state: JobState },
): boolean {
  // Another program has written to it.
  if (child.state !== "blocked") return false;
  if (isOrphan(child, parent.state)) {
    writeCancelled(session, child, "cancel", orphanReason(parent));
    return true;
  }
  const { connection } = session;
  if (connection.get("select 1 from escapement_parents where child = ? limit 1", child.seq) !== undefined)
    return false;
  follow(child.state, "unblock");
  connection.run(unblock, child.seq);
  place(session, child);
  return false;
}
