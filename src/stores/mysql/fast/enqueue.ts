import type { EnqueueResult, NewJob } from "../../../store/jobs.ts";
import { sql } from "../connection/sql.ts";
import { firstOfEach, knownBefore, resultsOf } from "../enqueue.ts";
import { countInserted } from "../jobs/counts.ts";
import { insertStatements, isPlain, writeCompanions } from "../jobs/insert.ts";
import type { Session } from "../session.ts";

/**
 * Enqueues jobs that depend on nothing but their ids in one trip: an insert, its companion rows, and the commit. Only if some ids were
 * taken, a second trip asks which. Needs a connection that counts changed rows.
 */
export async function enqueueInBulk(
  session: Session,
  jobs: readonly NewJob[],
  tag: number,
): Promise<EnqueueResult[]> {
  const { link, notices } = session;
  const distinct = firstOfEach(jobs);
  const answers = insertStatements(session, distinct, tag).map(({ statement, jobs: own }) => {
    const answer = link.query(statement);
    countInserted(session, own, tag);
    return answer;
  });
  if (!distinct.every(isPlain)) writeCompanions(session, distinct, sql`born = ${tag}`);
  session.commit();
  for (const { queue } of distinct) notices.claimable(queue);
  expectJobs(session, distinct);
  const added = (await Promise.all(answers)).reduce((sum, { affected }) => sum + affected, 0);
  if (added === distinct.length) return resultsOf(jobs, null);
  return resultsOf(jobs, await knownBefore(session, distinct, tag));
}

/** This process's next claim may find them at once. */
function expectJobs({ lines, remembered }: Session, jobs: readonly NewJob[]): void {
  let last: NewJob | null = null;
  for (const job of jobs) {
    if (!isPlain(job) || job.runAt !== null || job.delayMs > 0) continue;
    const same = last?.queue === job.queue && last.name === job.name && last.priority === job.priority;
    if (!same)
      remembered.expect({ line: lines.waiting("plain", job.queue, job.name), urgency: -job.priority });
    last = job;
  }
}
