import type { JobState } from "../../job.ts";
import { follow, isTerminal, type Outcome, type Settlement, settle, story } from "../../state.ts";
import { openChanged, openGate, openSaturated } from "./gates.ts";
import { findBySeq, type JobRow, laneOfKey, shelfOf } from "./jobs.ts";
import { jobColumns, numberOf } from "./rows.ts";
import type { Session } from "./session.ts";
import { tell } from "./trail.ts";

const columns = jobColumns.join(", ");

const moveToHistory = `insert into escapement_history (${columns}) select ${columns} from escapement_jobs where seq = ?`;
const deleteJob = "delete from escapement_jobs where seq = ?";

/** Takes a terminal job off the hot table. */
function archive({ connection }: Session, seq: number): void {
  connection.run(moveToHistory, seq);
  connection.run(deleteJob, seq);
}

const writeSettlement = `update escapement_jobs set
    state = ?, shelf = ?, reason = ?, attempt = ?, crashes = ?, rollbacks = rollbacks + ?, run_at = ?,
    error = coalesce(?, error), result = ?, finished_at = ?,
    lease_boot = null, lease_until = null
  where seq = ?`;

const writeSettled = "update escapement_jobs set settled = token, settled_by = null where seq = ?";

/**
 * Ends a claim as its outcome says: the core decides, this writes it down.
 *
 * @param byHolder whether its holder tells it.
 */
export function settleClaim(session: Session, job: JobRow, outcome: Outcome, byHolder: boolean): Settlement {
  const settlement = settle(job, outcome);
  const line = story(outcome);
  if (line !== null) tell(session, job, line.kind, line.text, line.error);
  const ended = isTerminal(settlement.state);
  const runAt = settlement.delayMs === null ? job.runAt : Math.trunc(session.now + settlement.delayMs);
  const shelf = ended ? null : shelfOf({ ...job, crashes: settlement.crashes });
  session.connection.run(
    writeSettlement,
    settlement.state,
    shelf,
    settlement.reason,
    settlement.attempt,
    settlement.crashes,
    settlement.rollbacks,
    runAt,
    settlement.error,
    settlement.result,
    ended ? session.now : null,
    job.seq,
  );
  if (byHolder) session.connection.run(writeSettled, job.seq);
  if (ended) {
    archive(session, job.seq);
    tellChildren(session, job, settlement.state);
  } else {
    session.notices.claimable(job.queue);
    if (shelf === "lane" && job.lane !== null) openGate(session, { ...job, lane: job.lane }, runAt);
  }
  noteFreed(session, [job]);
  return settlement;
}

/** Active jobs ended: whatever their keys or their queues kept back may go. */
export function noteFreed(
  session: Session,
  jobs: readonly Pick<JobRow, "concurrencyKey" | "queue" | "relayed">[],
): void {
  const counted = jobs.filter(({ relayed }) => !relayed);
  const limited = "select 1 from escapement_queues where ns = ? and queue = ? and concurrency is not null";
  for (const queue of new Set(counted.map((job) => job.queue))) {
    if (session.connection.get(limited, session.ns, queue) !== undefined) session.notices.claimable(queue);
  }
  for (const key of new Set(counted.map(({ concurrencyKey }) => concurrencyKey))) {
    if (key === null) continue;
    openSaturated(session, laneOfKey(key));
    session.notices.claimableAnywhere();
  }
}

/** Cancels a job that is not held by anybody. */
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
  const { connection, now } = session;
  if (job.state === "blocked") connection.run("delete from escapement_parents where child = ?", job.seq);
  connection.run(
    "update escapement_jobs set state = ?, shelf = null, reason = ?, finished_at = ? where seq = ?",
    follow(job.state, transition),
    reason,
    now,
    job.seq,
  );
  archive(session, job.seq);
  if (job.state === "waiting" && job.lane !== null) openChanged(session, job.lane);
}

/** Tells the end of a job to those that wait for it, and theirs to those that wait for them, without recursion. */
export function tellChildren(
  session: Session,
  ended: { readonly seq: number; readonly id: string },
  state: JobState,
): void {
  const { connection } = session;
  const news = [{ seq: ended.seq, id: ended.id, state }];
  for (const parent of news) {
    session.notices.ended(parent.id);
    const children = connection.all(
      "select child from escapement_parents where parent = ? order by child",
      parent.seq,
    );
    if (children.length > 0) connection.run("delete from escapement_parents where parent = ?", parent.seq);
    for (const row of children) {
      const child = findBySeq(session, numberOf(row["child"]));
      if (child !== null && hearEnd(session, child, parent)) {
        news.push({ seq: child.seq, id: child.id, state: "cancelled" });
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
  // Something else has written to it.
  if (child.state !== "blocked") return false;
  if (parent.state !== "succeeded" && child.afterFailure === "cancel") {
    writeCancelled(session, child, "cancel", orphanReason(parent));
    return true;
  }
  const { connection } = session;
  if (connection.get("select 1 from escapement_parents where child = ? limit 1", child.seq) !== undefined)
    return false;
  const shelf = shelfOf(child);
  connection.run(
    "update escapement_jobs set state = ?, shelf = ? where seq = ?",
    follow(child.state, "unblock"),
    shelf,
    child.seq,
  );
  session.notices.claimable(child.queue);
  if (shelf === "lane" && child.lane !== null) openGate(session, { ...child, lane: child.lane }, child.runAt);
  return false;
}

export function orphanReason(parent: { readonly id: string; readonly state: JobState }): string {
  return `its parent ${parent.id} is ${parent.state}`;
}
