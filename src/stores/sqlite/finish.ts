import type { JobState } from "../../job.ts";
import { isPlainSuccess, settle } from "../../state.ts";
import type { Finish, FinishParams, FinishResult } from "../../store/claims.ts";
import type { Tuple } from "./connection/connection.ts";
import { settleClaim } from "./end.ts";
import { findJob, type JobRow } from "./jobs/find.ts";
import { Succeeded } from "./jobs/succeeded.ts";
import { numberOf, textOf, textOrNull } from "./rows.ts";
import type { Session } from "./session.ts";

export function finish(session: Session, params: FinishParams): FinishResult[] {
  return finishAll(session, params.claimer, params.finishes, (job) => !job.relayed);
}

export function isHeldBy(job: JobRow, claimer: string, token: number): boolean {
  return job.state === "active" && job.token === token && job.claimer === claimer;
}

/** What must be known about a claim to end it with success. */
export interface ActiveRow {
  readonly seq: number;
  readonly id: string;
  readonly token: number;
  readonly claimer: string | null;
  readonly relayed: boolean;
  readonly slot: number;
  readonly queue: string;
  readonly name: string;
  readonly concurrencyKey: string | null;
  /** Its queue has a limit on active jobs. */
  readonly limited: boolean;
}

/** Ends those claims that belong to the claimer; `mine` says whether this verb may end a job at all. */
export function finishAll(
  session: Session,
  claimer: string,
  finishes: readonly Finish[],
  mine: (job: { readonly relayed: boolean; readonly slot: number }) => boolean,
): FinishResult[] {
  if (finishes.length === 0) return [];
  const active = readActive(session, finishes);
  const heldNow = ({ id, token }: Finish): ActiveRow | null => {
    const job = active.get(id);
    return job !== undefined && job.token === token && job.claimer === claimer && mine(job) ? job : null;
  };
  refuseHidden(session, finishes, heldNow);
  const succeeded = new Succeeded(session);
  const results = finishes.map((one): FinishResult => {
    const { id, token, outcome } = one;
    const job = heldNow(one);
    if (job === null) {
      // The result of this one must reflect what the earlier ones did.
      succeeded.write();
      return unheld(session, claimer, id, token);
    }
    active.delete(id);
    const state = isPlainSuccess(outcome)
      ? succeeded.add(job, outcome.result)
      : settleOne(session, id, outcome);
    return { outcome: "written", state };
  });
  succeeded.write();
  return results;
}

/** If a call names a job twice, an outcome that the core refuses must not hide behind one that it accepts. */
function refuseHidden(
  session: Session,
  finishes: readonly Finish[],
  heldNow: (one: Finish) => ActiveRow | null,
): void {
  if (new Set(finishes.map(({ id }) => id)).size === finishes.length) return;
  for (const one of finishes) {
    const job = heldNow(one) === null ? null : findJob(session, one.id);
    if (job !== null) settle(job, one.outcome);
  }
}

function settleOne(session: Session, id: string, outcome: Finish["outcome"]): JobState {
  const job = findJob(session, id);
  if (job === null) throw new Error(`the job ${id} vanished inside a transaction`);
  return settleClaim(session, job, outcome, true).state;
}

function unheld(session: Session, claimer: string, id: string, token: number): FinishResult {
  const job = findJob(session, id);
  if (job === null) return { outcome: "stale", state: null };
  const repeated = job.settled > 0 && job.settled === token && job.settledBy === claimer;
  return { outcome: repeated ? "repeated" : "stale", state: job.state };
}

const activeJobs = `select job.seq, job.id, token, claimer, relayed, slot, queue, concurrency_key, limited, name
  from (select value as wanted from json_each(?))
  cross join (select seq, ns, id from escapement_jobs) as job on job.ns = ? and job.id = wanted
  cross join escapement_active as active on active.seq = job.seq`;

function readActive({ connection, ns }: Session, finishes: readonly Finish[]): Map<string, ActiveRow> {
  const ids = JSON.stringify(finishes.map(({ id }) => id));
  const jobs = new Map<string, ActiveRow>();
  for (const row of connection.tuples(activeJobs, ids, ns)) {
    const job = toActive(row);
    jobs.set(job.id, job);
  }
  return jobs;
}

function toActive(row: Tuple): ActiveRow {
  return {
    seq: numberOf(row[0]),
    id: textOf(row[1]),
    token: numberOf(row[2]),
    claimer: textOrNull(row[3]),
    relayed: row[4] !== 0,
    slot: numberOf(row[5]),
    queue: textOf(row[6]),
    concurrencyKey: textOrNull(row[7]),
    limited: row[8] !== 0,
    name: textOf(row[9]),
  };
}
