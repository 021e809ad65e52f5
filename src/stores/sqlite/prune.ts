import type { PruneParams, PruneResult } from "../../store/reaping.ts";
import { countForgotten } from "./jobs/counts.ts";
import { numberOf } from "./rows.ts";
import type { Session } from "./session.ts";

/** How long a claimer's last sequence is remembered after its last claim: far longer than any claim's reply can take. */
const claimersMs = 30 * 24 * 3_600_000;

/** Terminal jobs past their retention; a job that still holds a unique key stays. */
const holdsNoKey = "not exists (select 1 from escapement_unique_keys where job = seq and until > ?)";
const forgettable = `select seq from escapement_ended indexed by escapement_ended_finished
  where ns = ? and state = ? and finished_at <= ? and forget_at is null and ${holdsNoKey}
  order by finished_at, seq limit +?`;
/** Those with their own retention. */
const forgettableThemselves = `select seq from escapement_ended indexed by escapement_ended_forget
  where ns = ? and forget_at <= ? and forget_at is not null and ${holdsNoKey} order by forget_at, seq limit +?`;

const chosen = "(select value from json_each(?))";

export function prune(session: Session, params: PruneParams): PruneResult {
  const { connection, ns, now } = session;
  pruneBystanders(session, params);
  const moreRows = pruneLedger(session, params);
  const retentions = [
    ["succeeded", params.succeededMs],
    ["cancelled", params.cancelledMs],
    ["dead", params.deadMs],
    ["lost", params.lostMs],
  ] as const;
  const found: number[] = [];
  for (const [state, keptMs] of retentions) {
    const room = params.limit + 1 - found.length;
    if (room <= 0) break;
    const rows = connection.all(forgettable, ns, state, Math.trunc(now - keptMs), now, room);
    found.push(...rows.map((row) => numberOf(row["seq"])));
  }
  const room = params.limit + 1 - found.length;
  if (room > 0) {
    const rows = connection.all(forgettableThemselves, ns, now, now, room);
    found.push(...rows.map((row) => numberOf(row["seq"])));
  }
  const pruned = found.slice(0, params.limit);
  forget(session, pruned);
  return { pruned: pruned.length, more: moreRows || found.length > pruned.length };
}

/** Deletes an ended job's trail, aliases and keys with it. */
export function forget(session: Session, jobs: readonly number[]): void {
  if (jobs.length === 0) return;
  const { connection } = session;
  const seqs = JSON.stringify(jobs);
  countForgotten(session, seqs);
  connection.run(`delete from escapement_trail where job in ${chosen}`, seqs);
  connection.run(`delete from escapement_aliases where job in ${chosen}`, seqs);
  connection.run(`delete from escapement_unique_keys where job in ${chosen}`, seqs);
  connection.run(`delete from escapement_ended where seq in ${chosen}`, seqs);
  connection.run(`delete from escapement_jobs where seq in ${chosen}`, seqs);
}

const oldRows = `select ns, key, fire_at from escapement_occurrences
  where ns = ? and planned_at <= ? order by planned_at, key, fire_at limit +?`;

/** Whether there are more. */
function pruneLedger({ connection, ns, now }: Session, { occurrencesMs, limit }: PruneParams): boolean {
  const before = Math.trunc(now - occurrencesMs);
  connection.run(
    `delete from escapement_occurrences where (ns, key, fire_at) in (${oldRows})`,
    ns,
    before,
    limit,
  );
  return connection.all(oldRows, ns, before, 1).length > 0;
}

function pruneBystanders({ connection, ns, now }: Session, params: PruneParams): void {
  connection.run(
    "delete from escapement_nodes where ns = ? and seen_at <= ?",
    ns,
    Math.trunc(now - params.nodesMs),
  );
  connection.run("delete from escapement_windows where ns = ? and started_at + per_ms <= ?", ns, now);
  connection.run(
    "delete from escapement_figures where ns = ? and kind = 'claimer' and seen_at <= ?",
    ns,
    now - claimersMs,
  );
}
