import assert from "node:assert";
import type { ClaimedJob, ClaimParams } from "../../../store/claims.ts";
import { risen } from "../../risen.ts";
import type { Candidate } from "../limits/lines.ts";
import type { Limits } from "../limits.ts";
import { seqOf, toClaimedJob } from "../rows.ts";
import type { Session } from "../session.ts";

const chosen = "seq in (select value from json_each(?))";

/** A job that is already active was put on the shelf by another program, and keeps its holder. */
const claimJobs = `insert or ignore into escapement_active (
    seq, ns, queue, name, attempt, token, claimer, claim_sequence, claimed_at, lease_boot, lease_until, ahead, limited,
    relayed, slot, concurrency_key, retention
  ) select seq, ns, queue, name, ${risen("min", "attempt")}, ${risen("min", "token")}, ?, ?, ?, ?, ?, ?,
    case when ? then queue in (select queue from escapement_queues where ns = ? and concurrency is not null) else 0 end,
    relayed, slot, concurrency_key, retention
  from escapement_jobs where ${chosen}`;

/** As escapement_all_jobs would show them, now that they are claimed. */
const readJobs = `select seq, id, name, queue, delivery, priority, tags, run_at, fire_at, enqueued_at, ${risen("min", "attempt")}, attempts,
    crashes, max_crashes, redrives, ${risen("min", "token")}, schedule, input, cancel_requested
  from escapement_jobs where ${chosen}`;

/**
 * Gives the chosen jobs to the claimer; the write lock has kept others out since they were chosen. The first `params.limit` are direct claims.
 */
export function hold(
  session: Session,
  params: ClaimParams,
  limits: Limits,
  taken: readonly Candidate[],
): ClaimedJob[] {
  if (taken.length === 0) return [];
  unshelve(session, taken);
  const limit = Math.max(0, params.limit);
  const isLimited = taken.some(({ queue }) => limits.isLimited(queue));
  const claimed =
    write(session, params, taken.slice(0, limit), false, isLimited) +
    write(session, params, taken.slice(limit), true, isLimited);
  const mine = claimed === taken.length ? taken : ownOf(session, params, taken);
  const jobs = new Map<number, ClaimedJob>();
  for (const row of session.connection.tuples(readJobs, listOf(mine)))
    jobs.set(seqOf(row), toClaimedJob(row));
  return mine.flatMap(({ seq }) => jobs.get(seq) ?? []);
}

const ownClaims = `select seq from escapement_active where ns = ? and claimer = ? and claim_sequence = ? and ${chosen}`;

function ownOf({ connection, ns }: Session, params: ClaimParams, taken: readonly Candidate[]): Candidate[] {
  const rows = connection.tuples(ownClaims, ns, params.claimer, params.sequence, listOf(taken));
  const own = new Set(rows.map(seqOf));
  return taken.filter(({ seq }) => own.has(seq));
}

function write(
  { connection, ns, now, boot, monotonic }: Session,
  { claimer, sequence, leaseMs }: ClaimParams,
  jobs: readonly Candidate[],
  ahead: boolean,
  isLimited: boolean,
): number {
  if (jobs.length === 0) return 0;
  const leaseUntil = Math.ceil(monotonic + leaseMs);
  const flags = [ahead ? 1 : 0, isLimited ? 1 : 0];
  return connection.run(claimJobs, claimer, sequence, now, boot, leaseUntil, ...flags, ns, listOf(jobs));
}

const unshelvePlain = `delete from escapement_plain
  where ns = ? and queue = ? and name = ? and priority = ? and (run_at, seq) <= (?, ?) and (expire_at is null or expire_at > ?)`;

/** Takes them off their shelves. Of a group's plain jobs, those of one priority were taken starting with the first. */
function unshelve({ connection, ns, now }: Session, taken: readonly Candidate[]): void {
  const runs = new Map<string, Candidate[]>();
  const shelved: Candidate[] = [];
  for (const job of taken) {
    if (!job.isPlain) {
      shelved.push(job);
      continue;
    }
    const key = `${job.priority} ${job.queue}\n${job.name}`;
    const run = runs.get(key);
    if (run === undefined) runs.set(key, [job]);
    else run.push(job);
  }
  for (const run of runs.values()) {
    const last = run.at(-1);
    if (last === undefined) continue;
    const { queue, name, priority, runAt, seq } = last;
    const removed = connection.run(unshelvePlain, ns, queue, name, priority, runAt, seq, now);
    assert.equal(removed, run.length, "the plain jobs that are claimed were not the first");
  }
  if (shelved.length > 0)
    connection.run(`update escapement_jobs set shelf = null where ${chosen}`, listOf(shelved));
  const untried = taken.filter((job) => job.untried);
  if (untried.length > 0) connection.run(`delete from escapement_untried where ${chosen}`, listOf(untried));
}

function listOf(jobs: readonly Candidate[]): string {
  return JSON.stringify(jobs.map(({ seq }) => seq));
}
