import type { PruneParams, PruneResult } from "../../store/reaping.ts";
import { fixed, now, type Sql, sql } from "./connection/sql.ts";
import { countForgotten } from "./jobs/counts.ts";
import { decodeKept } from "./jobs/kept.ts";
import { type LineRun, runsOf, toRun } from "./limits/shelves.ts";
import { numberOf, textOf, textOrNull } from "./rows.ts";
import type { Session } from "./session.ts";

export async function prune(session: Session, params: PruneParams): Promise<PruneResult> {
  pruneBystanders(session, params);
  const moreRows = await pruneLedger(session, params);
  const found: number[] = [];
  for (const { run, keptMs } of await runsToPrune(session, params)) {
    const room = params.limit + 1 - found.length;
    if (room > 0) found.push(...(await forgettable(session, run, keptMs, room)));
  }
  const pruned = found.slice(0, params.limit);
  if (pruned.length > 0) forget(session, pruned);
  return { pruned: pruned.length, more: moreRows || found.length > pruned.length };
}

/** The runs of terminal jobs of which some are past their retention: the app's, or their own. */
async function runsToPrune(
  { link, lines, now: nowMs }: Session,
  { succeededMs, cancelledMs, deadMs, lostMs }: PruneParams,
): Promise<{ readonly run: LineRun; readonly keptMs: number }[]> {
  const usual = new Map([
    [lines.common("succeeded"), succeededMs],
    [lines.common("cancelled"), cancelledMs],
    [lines.common("dead"), deadMs],
    [lines.common("lost"), lostMs],
  ]);
  const { rows } = await link.query(runsOf([...usual.keys()]));
  return rows.map(toRun).flatMap((run) => {
    const keptMs = run.urgency === 0 ? usual.get(run.line) : decodeKept(run.urgency);
    return keptMs === undefined || run.firstAt > nowMs - keptMs ? [] : { run, keptMs };
  });
}

/**
 * Terminal jobs of a run past their retention, locked; a job that still holds a unique key stays. They are searched without locks first: see
 * `listSilent` of `leases.ts`.
 */
async function forgettable(session: Session, run: LineRun, keptMs: number, limit: number): Promise<number[]> {
  const { link } = session;
  const isOver = sql`line = ${run.line} and urgency = ${run.urgency} and at <= ${now} - ${keptMs}
    and not exists (select 1 from escapement_unique_keys where job = seq and until > ${now})`;
  const { rows: listed } = await link.query(
    sql`select seq, debounce_key from escapement_jobs force index (escapement_jobs_line)
      left join escapement_debounce_keys on job = seq where ${isOver} order by at, seq limit ${limit}`,
  );
  const seqs = await leaveDebounceKeys(
    session,
    listed.map((row) => ({ seq: numberOf(row[0]), key: textOrNull(row[1]) })),
    lockOf(session),
  );
  if (seqs.length === 0) return [];
  const { rows } = await link.query(
    sql`select seq from escapement_jobs force index (primary)
      where seq in (${seqs}) and ${isOver} order by seq ${lockOf(session)}`,
  );
  return rows.map((row) => numberOf(row[0]));
}

function lockOf({ skipLocked }: Session): Sql {
  return fixed(skipLocked ? "for update skip locked" : "for update");
}

interface Listed {
  readonly seq: number;
  readonly key: string | null;
}

/**
 * Removes ended jobs from their debounce keys before they are locked: an enqueue locks the key first, too. Returns them
 * without those whose key another call is using now.
 */
export async function leaveDebounceKeys(
  session: Session,
  listed: readonly Listed[],
  lock: Sql,
): Promise<number[]> {
  const { link, ns } = session;
  const wanted = new Set(listed.flatMap(({ key }) => key ?? []));
  if (wanted.size === 0) return listed.map(({ seq }) => seq);
  const { rows } = await link.query(
    sql`select debounce_key from escapement_debounce_keys force index (primary)
      where ns = ${ns} and debounce_key in (${[...wanted]}) and job = 0 order by debounce_key ${lock}`,
  );
  const keys = new Set(rows.map((row) => textOf(row[0])));
  const leaving = listed.filter(({ key }) => key !== null && keys.has(key)).map(({ seq }) => seq);
  if (leaving.length > 0) {
    link.write(sql`delete from escapement_debounce_keys where job in (${leaving})`);
    link.write(
      sql`delete k from escapement_debounce_keys as k force index (primary)
        left join escapement_debounce_keys as other force index (primary)
          on other.ns = k.ns and other.debounce_key = k.debounce_key and other.job > 0
        where k.ns = ${ns} and k.debounce_key in (${[...keys]}) and k.job = 0 and other.job is null`,
    );
  }
  return listed.filter(({ key }) => key === null || keys.has(key)).map(({ seq }) => seq);
}

export function forget(session: Session, seqs: readonly number[]): void {
  const { link } = session;
  countForgotten(session, seqs);
  link.write(sql`delete from escapement_trail where job in (${seqs})`);
  link.write(sql`delete from escapement_unique_keys where job in (${seqs})`);
  link.write(
    sql`delete j from escapement_aliases as a straight_join escapement_jobs as j on j.seq = a.alias where a.job in (${seqs})`,
  );
  link.write(sql`delete from escapement_aliases where job in (${seqs})`);
  link.write(sql`delete from escapement_jobs where seq in (${seqs})`);
}

/** Whether there are more. */
async function pruneLedger({ link, ns }: Session, { occurrencesMs, limit }: PruneParams): Promise<boolean> {
  const isOld = sql`ns = ${ns} and planned_at <= ${now} - ${Math.trunc(occurrencesMs)}`;
  link.write(
    sql`delete from escapement_occurrences where ${isOld} order by planned_at, schedule_key, fire_at limit ${limit}`,
  );
  const { rows } = await link.query(sql`select 1 from escapement_occurrences where ${isOld} limit 1`);
  return rows.length > 0;
}

function pruneBystanders({ link, ns }: Session, params: PruneParams): void {
  link.write(
    sql`delete from escapement_nodes where ns = ${ns} and seen_at <= ${now} - ${Math.trunc(params.nodesMs)}`,
  );
  link.write(sql`delete from escapement_windows where ns = ${ns} and started_at + per_ms <= ${now}`);
}
