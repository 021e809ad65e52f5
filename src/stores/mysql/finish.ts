import type { JobState } from "../../job.ts";
import { isPlainSuccess, isTerminal, type Outcome, settle } from "../../state.ts";
import type { Finish, FinishParams, FinishResult } from "../../store/claims.ts";
import { perGroup } from "../kept-counts.ts";
import { fixed } from "./connection/sql.ts";
import { type Ended, noteFreed, settleClaim, tellChildren } from "./end.ts";
import { highestSeq, writeCounts } from "./jobs/counts.ts";
import { type JobRow, lockJobs } from "./jobs/find.ts";
import { type Success, writeSucceeded } from "./jobs/succeeded.ts";
import { leaveLanes } from "./limits/lane-jobs.ts";
import type { Session } from "./session.ts";

export function finish(session: Session, params: FinishParams): Promise<FinishResult[]> {
  return finishAll(session, session.claimers.of(params.claimer), params.finishes, (job) => !job.relayed);
}

export function isHeldBy(job: JobRow, claimer: number, token: number): boolean {
  return job.state === "active" && job.token === token && job.claimer === claimer;
}

/** Ends those claims that belong to the claimer; `mine` says whether this verb may end a job at all. */
export async function finishAll(
  session: Session,
  claimer: number,
  finishes: readonly Finish[],
  mine: (job: JobRow) => boolean,
): Promise<FinishResult[]> {
  if (finishes.length === 0) return [];
  const jobs = await lockJobs(session, [...new Set(finishes.map(({ id }) => id))]);
  const isHeld = (job: JobRow | undefined, token: number): job is JobRow =>
    job !== undefined && mine(job) && isHeldBy(job, claimer, token);
  // An outcome that the core refuses must throw before anything is written, even if it follows another one of the same claim.
  for (const { id, token, outcome } of finishes) {
    const job = jobs.get(id);
    if (isHeld(job, token)) settle(job, outcome);
  }
  const results: FinishResult[] = [];
  const ended: Ended[] = [];
  const succeeded: Succeeded[] = [];
  for (const { id, token, outcome } of finishes) {
    let job = jobs.get(id);
    if (job !== undefined && (session.changed.has(job.seq) || job.state === "blocked")) {
      // The result of this one must reflect what the earlier ones did.
      writeAll(session, succeeded.splice(0));
      await tellChildren(session, ended.splice(0));
      job = (await lockJobs(session, [id])).get(id);
    }
    if (!isHeld(job, token)) {
      results.push(unheld(job, claimer, token));
      continue;
    }
    const state = settleOne(session, job, outcome, succeeded);
    if (isTerminal(state)) ended.push({ seq: job.seq, id, state });
    results.push({ outcome: "written", state });
  }
  writeAll(session, succeeded);
  await tellChildren(session, ended);
  return results;
}

/** Successes are only noted here, and written together. */
function settleOne(session: Session, job: JobRow, outcome: Outcome, succeeded: Succeeded[]): JobState {
  if (!isPlainSuccess(outcome)) return settleClaim(session, job, outcome, true).state;
  const { state, result } = settle(job, outcome);
  succeeded.push({ ...job, result });
  session.changed.add(job.seq);
  return state;
}

type Succeeded = JobRow & Success;

function writeAll(session: Session, succeeded: readonly Succeeded[]): void {
  writeSucceeded(session, succeeded, fixed("true"));
  writeCounts(session, "succeeded", perGroup(succeeded), highestSeq(succeeded));
  leaveLanes(session, succeeded);
  noteFreed(session, succeeded);
}

function unheld(job: JobRow | undefined, claimer: number, token: number): FinishResult {
  if (job === undefined) return { outcome: "stale", state: null };
  const repeated = job.settled > 0 && job.settled === token && job.settledBy === claimer;
  return { outcome: repeated ? "repeated" : "stale", state: job.state };
}
