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
import type { Tuple } from "./connection/link.ts";
import { fixed, sql } from "./connection/sql.ts";
import { countEnd } from "./jobs/counts.ts";
import { expireLater } from "./jobs/expiring.ts";
import { type JobRow, lockBySeq, standing } from "./jobs/find.ts";
import { tell } from "./jobs/trail.ts";
import { joinLane, laneChanged, laneFreed, leaveLane, waitAgain } from "./limits/lane-jobs.ts";
import { numberOf, stateOf, textOf } from "./rows.ts";
import type { Session } from "./session.ts";

/** A job that reached a terminal state, for callers that wait for it. */
export interface Ended {
  readonly seq: number;
  readonly id: string;
  readonly state: JobState;
}

const settledByHolder = fixed(", settled = token, settled_by = claimer, ahead = 0");
const nothingMore = fixed("");

/**
 * Ends a claim by its outcome: the core decides, this writes it down. If the job ends with it, pass that on to its children
 * with {@link tellChildren}.
 *
 * @param byHolder whether the claim's holder reports it.
 */
export function settleClaim(session: Session, job: JobRow, outcome: Outcome, byHolder: boolean): Settlement {
  const settlement = settle(job, outcome);
  const line = story(outcome);
  if (line !== null) tell(session, job, line.kind, line.text, line.error);
  const { state, crashes, delayMs } = settlement;
  const runAt = delayMs === null ? job.runAt : Math.trunc(session.now + delayMs);
  const place = standing(session, state, { ...job, crashes, runAt }, session.now);
  session.link.write(
    sql`update escapement_jobs set state = ${state}, ${place}, reason = ${settlement.reason}, attempt = ${settlement.attempt},
        crashes = ${crashes}, rollbacks = least(rollbacks + ${settlement.rollbacks}, ${maxCount}), run_at = ${runAt},
        error = coalesce(${settlement.error}, error), result = ${settlement.result}${byHolder ? settledByHolder : nothingMore}
      where seq = ${job.seq}`,
  );
  session.changed.add(job.seq);
  if (isTerminal(state)) {
    countEnd(session, job, state, 1);
    leaveLane(session, job);
  } else {
    session.notices.claimable(job.queue);
    waitAgain(session, job, crashes, runAt);
    // The reaper may have removed it from the list while it was active.
    if (settlement.attempt === 0 && job.expireAt !== null) expireLater(session, job.seq, job.expireAt);
  }
  noteFreed(session, [job]);
  return settlement;
}

/** Active jobs ended: jobs that their keys or queues held back may go. */
export function noteFreed(
  session: Session,
  jobs: readonly Pick<JobRow, "concurrencyKey" | "queue" | "relayed">[],
): void {
  const keys = new Set<string>();
  for (const { relayed, queue, concurrencyKey } of jobs) {
    if (relayed) continue;
    if (session.queues.of(queue).concurrency !== null) session.notices.claimable(queue);
    if (concurrencyKey !== null) keys.add(concurrencyKey);
  }
  for (const key of keys) {
    laneFreed(session, laneOfKey(key));
    session.notices.claimableAnywhere();
  }
}

/** Cancels a job that is not claimed; the caller must update its children. */
export function cancelIdle(
  session: Session,
  job: JobRow,
  transition: "cancel" | "expire",
  reason: string | null,
): Ended {
  const { link, now } = session;
  const state = follow(job.state, transition);
  if (job.state === "blocked") link.write(sql`delete from escapement_parents where child = ${job.seq}`);
  link.write(
    sql`update escapement_jobs set state = ${state}, ${standing(session, state, job, now)}, reason = ${reason}
      where seq = ${job.seq}`,
  );
  session.changed.add(job.seq);
  countEnd(session, job, state, 1);
  if (job.state === "waiting") {
    leaveLane(session, job);
    laneChanged(session, job.relayed ? null : job.lane);
  }
  return { seq: job.seq, id: job.id, state };
}

/** Passes the end of jobs on to their children, and theirs to their children, one generation at a time. */
export async function tellChildren(session: Session, ended: readonly Ended[]): Promise<void> {
  for (let parents = ended; parents.length > 0; ) {
    for (const { id } of parents) session.notices.ended(id);
    parents = await tellGeneration(session, parents);
  }
}

/** Returns the children that ended too. */
async function tellGeneration(session: Session, parents: readonly Ended[]): Promise<Ended[]> {
  const { link } = session;
  const seqs = parents.map(({ seq }) => seq);
  const { rows } = await link.query(
    sql`select parent, child from escapement_parents where parent in (${seqs}) order by child`,
  );
  if (rows.length === 0) return [];
  const places = new Map(parents.map((parent, place) => [parent.seq, place]));
  const edges = rows
    .map((row) => ({ place: places.get(numberOf(row[0])) ?? 0, child: numberOf(row[1]) }))
    .sort((a, b) => a.place - b.place || a.child - b.child);
  // The children are locked first: if two parents end at once, the second must see what the first has left.
  const children = await lockBySeq(session, [...new Set(edges.map(({ child }) => child))]);
  link.write(sql`delete from escapement_parents where parent in (${seqs})`);
  const { rows: left } = await link.query(
    sql`select distinct child from escapement_parents where child in (${[...children.keys()]})`,
  );
  const stillWaiting = new Set(left.map((row) => numberOf(row[0])));
  const endedToo = new Map<number, Ended>();
  for (const { place, child } of edges) {
    const job = children.get(child);
    const parent = parents[place];
    if (job?.state !== "blocked" || parent === undefined || endedToo.has(child)) continue;
    if (isOrphan(job, parent.state)) {
      endedToo.set(child, cancelIdle(session, job, "cancel", orphanReason(parent)));
    }
  }
  for (const job of children.values()) {
    if (job.state === "blocked" && !endedToo.has(job.seq) && !stillWaiting.has(job.seq))
      unblock(session, job);
  }
  return [...endedToo.values()];
}

function unblock(session: Session, job: JobRow): void {
  const state = follow(job.state, "unblock");
  session.link.write(
    sql`update escapement_jobs set state = ${state}, ${standing(session, state, job, 0)} where seq = ${job.seq}`,
  );
  session.changed.add(job.seq);
  session.notices.claimable(job.queue);
  // A job that was never claimed has not crashed, so it is never fragile.
  if (!job.relayed) joinLane(session, job, job.runAt);
}

/** Checks children whose parents may have ended without seeing them; see `shareJobs`. */
export async function adoptChildren(session: Session): Promise<void> {
  const { link, ns, skipLocked } = session;
  const lock = fixed(skipLocked ? "for update skip locked" : "for update");
  const { rows } = await link.query(
    sql`select child from escapement_adoptions where ns = ${ns} limit ${maxAdopted} ${lock}`,
  );
  if (rows.length === 0) return;
  const children = rows.map((row) => numberOf(row[0]));
  const ended = await endedParents(session, children);
  link.write(sql`delete from escapement_adoptions where ns = ${ns} and child in (${children})`);
  const parents = ended.map((row) => ({
    seq: numberOf(row[0]),
    id: textOf(row[1]),
    state: stateOf(row[2]),
  }));
  await tellChildren(session, parents);
}

const maxAdopted = 1_000;

/**
 * Waits for parents that are ending right now: that call may have looked for children before there were any. A parent that ends later
 * sees its child, which is committed by then. The edges are read without locks: a call that ends a parent locks it, then deletes them.
 */
async function endedParents({ link }: Session, children: readonly number[]): Promise<readonly Tuple[]> {
  const { rows: edges } = await link.query(
    sql`select distinct parent from escapement_parents where child in (${children})`,
  );
  if (edges.length === 0) return [];
  const parents = edges.map((row) => numberOf(row[0]));
  const { rows: there } = await link.query(sql`select seq from escapement_jobs where seq in (${parents})`);
  const known = new Set(there.map((row) => numberOf(row[0])));
  // A forgotten parent had ended, in a state that is no longer known.
  const forgotten = parents.filter((seq) => !known.has(seq)).map((seq): Tuple => [seq, "", "succeeded"]);
  const { rows } = await link.query(
    sql`select seq, id, state from escapement_jobs force index (primary)
      where seq in (${parents}) and state in ('succeeded', 'dead', 'lost', 'cancelled')
      order by seq lock in share mode`,
  );
  return [...rows, ...forgotten];
}
