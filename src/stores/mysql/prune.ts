import type { PruneParams, PruneResult } from "../../store.ts";
import { numberOf } from "./rows.ts";
import type { Session } from "./session.ts";
import { fixed, now, sql } from "./sql.ts";

export async function prune(session: Session, params: PruneParams): Promise<PruneResult> {
  pruneBystanders(session, params);
  const retentions = [
    ["succeeded", params.succeededMs],
    ["cancelled", params.cancelledMs],
    ["dead", params.deadMs],
    ["lost", params.lostMs],
  ] as const;
  const found: number[] = [];
  for (const [state, keptMs] of retentions) {
    const room = params.limit + 1 - found.length;
    if (room > 0) found.push(...(await forgettable(session, state, keptMs, room)));
  }
  const pruned = found.slice(0, params.limit);
  if (pruned.length > 0) forget(session, pruned);
  return { pruned: pruned.length, more: found.length > pruned.length };
}

/**
 * Terminal jobs past their retention, locked; who still holds a unique key stays. They are looked for without locks first: see
 * `listSilent` of `leases.ts`.
 */
async function forgettable(
  { link, lines, skipLocked }: Session,
  state: "succeeded" | "cancelled" | "dead" | "lost",
  keptMs: number,
  limit: number,
): Promise<number[]> {
  const isOver = sql`line = ${lines.common(state)} and urgency = 0 and at <= ${now} - ${keptMs}
    and not exists (select 1 from escapement_unique_keys where job = seq and until > ${now})`;
  const { rows: listed } = await link.query(
    sql`select seq from escapement_jobs force index (escapement_jobs_line) where ${isOver} order by at, seq limit ${limit}`,
  );
  if (listed.length === 0) return [];
  const lock = fixed(skipLocked ? "for update skip locked" : "for update");
  const { rows } = await link.query(
    sql`select seq from escapement_jobs force index (primary)
      where seq in (${listed.map((row) => numberOf(row[0]))}) and ${isOver} order by seq ${lock}`,
  );
  return rows.map((row) => numberOf(row[0]));
}

function forget({ link }: Session, seqs: readonly number[]): void {
  link.write(sql`delete from escapement_trail where job in (${seqs})`);
  link.write(sql`delete from escapement_unique_keys where job in (${seqs})`);
  link.write(
    sql`delete j from escapement_aliases as a straight_join escapement_jobs as j on j.seq = a.alias where a.job in (${seqs})`,
  );
  link.write(sql`delete from escapement_aliases where job in (${seqs})`);
  link.write(sql`delete from escapement_jobs where seq in (${seqs})`);
}

function pruneBystanders({ link, ns }: Session, params: PruneParams): void {
  link.write(
    sql`delete from escapement_nodes where ns = ${ns} and seen_at <= ${now} - ${Math.trunc(params.nodesMs)}`,
  );
  link.write(
    sql`delete from escapement_occurrences where ns = ${ns} and planned_at <= ${now} - ${Math.trunc(params.occurrencesMs)}
      order by planned_at, schedule_key, fire_at limit ${params.limit}`,
  );
  link.write(sql`delete from escapement_windows where ns = ${ns} and started_at + per_ms <= ${now}`);
}
