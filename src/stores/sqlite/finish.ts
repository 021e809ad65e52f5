import type { JobState } from "../../job.ts";
import { settle } from "../../state.ts";
import type { Finish, FinishParams, FinishResult } from "../../store.ts";
import { noteFreed, settleClaim, tellChildren } from "./end.ts";
import { findJob, type JobRow, rowColumns, toJobRow } from "./jobs.ts";
import { jobColumns } from "./rows.ts";
import type { Session } from "./session.ts";

export function finish(session: Session, params: FinishParams): FinishResult[] {
  return finishAll(session, params.claimer, params.finishes, (job) => !job.relayed);
}

export function isHeldBy(job: JobRow, claimer: string, token: number): boolean {
  return job.state === "active" && job.token === token && job.claimer === claimer;
}

const hotJobs = `select ${rowColumns} from (select value as wanted from json_each(?))
  cross join escapement_jobs on ns = ? and id = wanted`;

/** Ends those claims that are the claimer's; `mine` tells whether a job is at all for this verb to end. */
export function finishAll(
  session: Session,
  claimer: string,
  finishes: readonly Finish[],
  mine: (job: JobRow) => boolean,
): FinishResult[] {
  if (finishes.length === 0) return [];
  const hot = readHot(session, finishes);
  const succeeded = new Succeeded(session);
  const results = finishes.map(({ id, token, outcome }): FinishResult => {
    const job = hot.get(id) ?? findJob(session, id);
    if (job === null) return { outcome: "stale", state: null };
    if (mine(job) && isHeldBy(job, claimer, token)) {
      const state =
        outcome.kind === "succeed"
          ? succeeded.add(job, outcome.result)
          : settleClaim(session, job, outcome, claimer).state;
      hot.set(id, { ...job, state, settled: token, settledBy: claimer });
      return { outcome: "written", state };
    }
    const repeated = job.settled === token && job.settledBy === claimer;
    return { outcome: repeated ? "repeated" : "stale", state: job.state };
  });
  succeeded.write();
  return results;
}

function readHot({ connection, ns }: Session, finishes: readonly Finish[]): Map<string, JobRow> {
  const ids = JSON.stringify(finishes.map(({ id }) => id));
  return new Map(
    connection.all(hotJobs, ids, ns).map((row) => {
      const job = toJobRow(row);
      return [job.id, job];
    }),
  );
}

/** What becomes of the columns when a job succeeds; the rest is taken over. */
const onSuccess: Readonly<Partial<Record<(typeof jobColumns)[number], string>>> = {
  state: "?2",
  shelf: "null",
  reason: "null",
  result: "null",
  settled: "token",
  settled_by: "claimer",
  finished_at: "?3",
  lease_boot: "null",
  lease_until: "null",
};

const columns = jobColumns.join(", ");
const succeededColumns = jobColumns.map((column) => onSuccess[column] ?? column).join(", ");

const archiveSucceeded = `insert into escapement_history (${columns})
  select ${succeededColumns} from escapement_jobs where seq in (select value from json_each(?1))`;
const deleteSucceeded = "delete from escapement_jobs where seq in (select value from json_each(?))";
const writeResult = "update escapement_history set result = ? where seq = ?";

/** Successes are what almost every job ends with, so they are written together. */
class Succeeded {
  readonly #session: Session;
  readonly #jobs: JobRow[] = [];
  readonly #results: { readonly seq: number; readonly result: string }[] = [];
  #state: JobState = "succeeded";

  constructor(session: Session) {
    this.#session = session;
  }

  add(job: JobRow, result: string | null): JobState {
    this.#state = settle(job, { kind: "succeed", result }).state;
    this.#jobs.push(job);
    if (result !== null) this.#results.push({ seq: job.seq, result });
    return this.#state;
  }

  write(): void {
    if (this.#jobs.length === 0) return;
    const { connection, now } = this.#session;
    const seqs = JSON.stringify(this.#jobs.map(({ seq }) => seq));
    connection.run(archiveSucceeded, seqs, this.#state, now);
    connection.run(deleteSucceeded, seqs);
    for (const { seq, result } of this.#results) connection.run(writeResult, result, seq);
    for (const job of this.#jobs) {
      tellChildren(this.#session, job, this.#state);
      noteFreed(this.#session, job);
    }
  }
}
