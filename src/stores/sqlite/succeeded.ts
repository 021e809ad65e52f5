import type { JobState } from "../../job.ts";
import { follow } from "../../state.ts";
import type { FinishResult } from "../../store.ts";
import { noteFreed, tellChildren } from "./end.ts";
import type { ActiveRow } from "./finish.ts";
import { jobColumns } from "./rows.ts";
import type { Session } from "./session.ts";

/** What becomes of the columns when a job succeeds; the rest is taken over. ?2 is the new state, ?3 is now. */
const onSuccess: Readonly<Partial<Record<(typeof jobColumns)[number], string>>> = {
  state: "?2",
  shelf: "null",
  reason: "null",
  result: "given ->> 1",
  settled: "token",
  settled_by: "null",
  finished_at: "?3",
  lease_boot: "null",
  lease_until: "null",
};

const columns = jobColumns.join(", ");
const succeededColumns = jobColumns.map((column) => onSuccess[column] ?? column).join(", ");

/** ?1 is a JSON list of [seq, result]. */
const archiveSucceeded = `insert into escapement_history (${columns})
  select ${succeededColumns} from (select value as given from json_each(?1))
  cross join escapement_jobs on seq = given ->> 0`;
const deleteSucceeded = "delete from escapement_jobs where seq in (select value ->> 0 from json_each(?))";
const anyChild = "select 1 from escapement_parents limit 1";

/** Successes are what almost every job ends with, so those of one call are written together. */
export class Succeeded {
  readonly #session: Session;
  readonly #jobs = new Map<string, ActiveRow>();
  readonly #results: (readonly [seq: number, result: string | null])[] = [];
  readonly #state: JobState = follow("active", "succeed");

  constructor(session: Session) {
    this.#session = session;
  }

  add(job: ActiveRow, result: string | null): JobState {
    this.#jobs.set(job.id, job);
    this.#results.push([job.seq, result]);
    return this.#state;
  }

  /** What to answer to another finish of a job in this call; null when there was none. */
  repeated(id: string, token: number): FinishResult | null {
    const job = this.#jobs.get(id);
    if (job === undefined) return null;
    return { outcome: job.token === token ? "repeated" : "stale", state: this.#state };
  }

  write(): void {
    if (this.#jobs.size === 0) return;
    const { connection, now, notices } = this.#session;
    const results = JSON.stringify(this.#results);
    connection.run(archiveSucceeded, results, this.#state, now);
    connection.run(deleteSucceeded, results);
    const jobs = [...this.#jobs.values()];
    noteFreed(this.#session, jobs);
    if (connection.get(anyChild) === undefined) {
      for (const { id } of jobs) notices.ended(id);
    } else {
      for (const job of jobs) tellChildren(this.#session, job, this.#state);
    }
  }
}
