import type { JobState } from "../../../job.ts";
import { follow } from "../../../state.ts";
import { perGroup } from "../../kept-counts.ts";
import { noteFreed, tellChildren } from "../end.ts";
import type { ActiveRow } from "../finish.ts";
import type { Session } from "../session.ts";
import { countEnded } from "./counts.ts";

const endSucceeded = (result: string, from: string): string => `insert into escapement_ended (
    seq, ns, state, finished_at, attempt, token, settled, claimer, claimed_at, forget_at, result
  ) select seq, ns, ?, ?, attempt, token, token, claimer, claimed_at,
    case when retention is not null and json_valid(retention) then ? + (retention ->> 0) end, ${result} from ${from}`;

/** After state, now and now: a JSON list of [seq, result]. */
const endWithResults = endSucceeded(
  "given ->> 1",
  "(select value as given from json_each(?)) cross join escapement_active on seq = given ->> 0",
);
/** After state, now and now: a JSON list of seq. Many handlers have no result, and without results this is cheaper. */
const endWithout = endSucceeded("null", "escapement_active where seq in (select value from json_each(?))");
const deleteClaims = "delete from escapement_active where seq in (select value from json_each(?))";
const closeJobs = "delete from escapement_open where seq in (select value from json_each(?))";
const anyChild = "select 1 from escapement_parents limit 1";

type Result = readonly [seq: number, result: string | null];

/** Maximum total length of the results in one statement: strings and memory have limits. */
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

/** Almost every job ends with success, so the successes of one call are written together. */
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
        connection.run(endWithout, this.#state, now, now, JSON.stringify(chunk.map(([seq]) => seq)));
      else connection.run(endWithResults, this.#state, now, now, JSON.stringify(chunk));
    }
    connection.run(deleteClaims, seqs);
    connection.run(closeJobs, seqs);
    for (const group of perGroup(jobs)) countEnded(this.#session, group, "succeeded", group.jobs);
    noteFreed(this.#session, jobs);
    if (connection.get(anyChild) === undefined) {
      for (const { id } of jobs) notices.ended(id);
    } else {
      for (const job of jobs) tellChildren(this.#session, job, this.#state);
    }
  }
}
