import type { Escapement } from "../app/escapement.ts";
import type { Job } from "../job.ts";
import type { FinalJob, LedgerRow } from "./history.ts";

const page = 1_000;

/** Every job that the store has in the end. */
export async function readFinalJobs(app: Escapement): Promise<FinalJob[]> {
  const found: FinalJob[] = [];
  let cursor: string | null = null;
  do {
    const read: { jobs: Job[]; cursor: string | null } = await app.list(
      {},
      { limit: page, order: "oldest", cursor },
    );
    found.push(...read.jobs.map(finalJob));
    cursor = read.cursor;
  } while (cursor !== null);
  return found;
}

function finalJob(job: Job): FinalJob {
  const { id, delivery, state, reason, token, attempt, rollbacks, result, schedule, fireAt } = job;
  const isResult = typeof result === "object" && result !== null && "token" in result;
  return {
    id,
    delivery,
    state,
    reason,
    token,
    attempt,
    rollbacks,
    resultToken: isResult && typeof result.token === "number" ? result.token : null,
    schedule,
    fireAt: fireAt.getTime(),
  };
}

/** The ledger of the run's schedules. */
export async function readLedger(app: Escapement, schedules: readonly string[]): Promise<LedgerRow[]> {
  const rows = await Promise.all(
    schedules.map(async (schedule) => {
      const found = await app.occurrences(schedule, { limit: 10_000 });
      return found.map(
        ({ fireAt, until, fate, reason, jobId }): LedgerRow => ({
          schedule,
          fireAt: fireAt.getTime(),
          until: until?.getTime() ?? null,
          fate: fate === "skipped" ? "skipped" : "planned",
          reason,
          job: jobId,
        }),
      );
    }),
  );
  return rows.flat();
}
