import type { EnqueueResult, NewJob } from "../../store.ts";
import { countInserted } from "./counts.ts";
import { firstOfEach, knownBefore, resultsOf } from "./enqueue.ts";
import { insertStatements, isPlain, writeCompanions } from "./insert.ts";
import type { Session } from "./session.ts";
import { sql } from "./sql.ts";

/**
 * Enqueues jobs that only their ids concern in one trip: an insert, what goes with it, and the commit. Only where some ids were
 * taken, a second trip asks which. The connection has to count changes.
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

/** The next claim of this process may find them at once. */
function expectJobs({ lines, recall }: Session, jobs: readonly NewJob[]): void {
  let last: NewJob | null = null;
  for (const job of jobs) {
    if (!isPlain(job) || job.runAt !== null || job.delayMs > 0) continue;
    const same = last?.queue === job.queue && last.name === job.name && last.priority === job.priority;
    if (!same) recall.expect({ line: lines.waiting("plain", job.queue, job.name), urgency: -job.priority });
    last = job;
  }
}
