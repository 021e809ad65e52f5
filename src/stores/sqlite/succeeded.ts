import type { JobState } from "../../job.ts";
import { follow } from "../../state.ts";
import { noteFreed, tellChildren } from "./end.ts";
import type { ActiveRow } from "./finish.ts";
import { jobColumns } from "./rows.ts";
import type { Session } from "./session.ts";

/** What becomes of the columns when a job succeeds; the rest is taken over. First comes the new state, then now. */
const onSuccess: Readonly<Partial<Record<(typeof jobColumns)[number], string>>> = {
  state: "?",
  reason: "null",
  settled: "token",
  settled_by: "null",
  finished_at: "?",
};

const columns = jobColumns.join(", ");
const succeededColumns = (result: string): string =>
  jobColumns.map((column) => (column === "result" ? result : (onSuccess[column] ?? column))).join(", ");

/** After state and now: a JSON list of [seq, result]. */
const archiveWithResults = `insert into escapement_history (${columns})
  select ${succeededColumns("given ->> 1")} from (select value as given from json_each(?))
  cross join escapement_jobs on seq = given ->> 0`;
/** After state and now: a JSON list of seq. Without results, which many handlers have none of, this is cheaper. */
const archiveWithout = `insert into escapement_history (${columns})
  select ${succeededColumns("null")} from escapement_jobs where seq in (select value from json_each(?))`;
const deleteSucceeded = "delete from escapement_jobs where seq in (select value from json_each(?))";
const anyChild = "select 1 from escapement_parents limit 1";

type Result = readonly [seq: number, result: string | null];

/** How long the results of one statement may be together: a text has an end, and so has memory. */
const maxChunkLength = 8_000_000;

function chunksOf(results: readonly Result[]): Result[][] {
  const chunks: Result[][] = [];
  let length = Number.POSITIVE_INFINITY;
  for (const one of results) {
    const own = one[1]?.length ?? 0;
    length += own;
    const last = chunks.at(-1);
    if (last !== undefined && length <= maxChunkLength) last.push(one);
    else {
      chunks.push([one]);
      length = own;
    }
  }
  return chunks;
}

/** Successes are what almost every job ends with, so those of one call are written together. */
export class Succeeded {
  readonly #session: Session;
  readonly #jobs: ActiveRow[] = [];
  readonly #results: Result[] = [];
  readonly #state: JobState = follow("active", "succeed");

  constructor(session: Session) {
    this.#session = session;
  }

  add(job: ActiveRow, result: string | null): JobState {
    this.#jobs.push(job);
    this.#results.push([job.seq, result]);
    return this.#state;
  }

  /** Writes what was added since the last time. */
  write(): void {
    if (this.#jobs.length === 0) return;
    const { connection, now, notices } = this.#session;
    const jobs = this.#jobs.splice(0);
    const results = this.#results.splice(0);
    const seqs = JSON.stringify(results.map(([seq]) => seq));
    for (const chunk of chunksOf(results)) {
      if (chunk.every(([, result]) => result === null))
        connection.run(archiveWithout, this.#state, now, JSON.stringify(chunk.map(([seq]) => seq)));
      else connection.run(archiveWithResults, this.#state, now, JSON.stringify(chunk));
    }
    connection.run(deleteSucceeded, seqs);
    noteFreed(this.#session, jobs);
    if (connection.get(anyChild) === undefined) {
      for (const { id } of jobs) notices.ended(id);
    } else {
      for (const job of jobs) tellChildren(this.#session, job, this.#state);
    }
  }
}
