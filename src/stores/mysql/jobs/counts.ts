import type { JobState } from "../../../job.ts";
import type { EndedState } from "../../../state.ts";
import type { NewJob } from "../../../store/jobs.ts";
import type { CountRow } from "../../../store/questions.ts";
import { byState, type KeptCount, type KeptKind, perGroup } from "../../kept-counts.ts";
import type { Answer } from "../connection/link.ts";
import { fixed, join, type Sql, sql } from "../connection/sql.ts";
import { numberOf, textOf } from "../rows.ts";
import type { Session } from "../session.ts";

/** This many jobs of one queue and name were added, ended, redriven or forgotten. */
interface Change {
  readonly queue: string;
  readonly name: string;
  readonly jobs: number;
}

const columns = fixed("ns, kind, queue, name, jobs, last_seq");

/**
 * Keeps count in this transaction. Rows are only added, so no call waits for another one, nor for a caller's long transaction.
 *
 * @param lastSeq the highest of the ended jobs.
 */
export function writeCounts(
  { link, ns }: Session,
  kind: KeptKind,
  changes: readonly Change[],
  lastSeq: number,
): void {
  if (changes.length === 0) return;
  const rows = changes.map(
    ({ queue, name, jobs }) => sql`(${ns}, ${kind}, ${queue}, ${name}, ${jobs}, ${lastSeq})`,
  );
  link.write(sql`insert into escapement_count_changes (${columns}) values ${join(rows, ", ")}`);
}

export function highestSeq(jobs: readonly { readonly seq: number }[]): number {
  return jobs.reduce((highest, { seq }) => Math.max(highest, seq), 0);
}

/** One job has ended, or was redriven. */
export function countEnd(
  session: Session,
  { seq, queue, name }: { readonly seq: number; readonly queue: string; readonly name: string },
  state: JobState,
  jobs: 1 | -1,
): void {
  writeCounts(session, state as EndedState, [{ queue, name, jobs }], seq);
}

/**
 * The same if the server decides whether it happened. A row of zero is harmless, and plain values, unlike the rows of a SELECT,
 * are inserted without the table's auto-increment lock.
 */
export function writeCountsIf(
  { link, ns }: Session,
  kind: KeptKind,
  changes: readonly Change[],
  lastSeq: number,
  condition: Sql,
): void {
  if (changes.length === 0) return;
  const rows = changes.map(
    ({ queue, name, jobs }) =>
      sql`(${ns}, ${kind}, ${queue}, ${name}, if(${condition}, ${jobs}, 0), ${lastSeq})`,
  );
  link.write(sql`insert into escapement_count_changes (${columns}) values ${join(rows, ", ")}`);
}

/**
 * Counts what the last statement added, in the same trip. Only for connections whose row_count() leaves out existing rows, such as
 * those of jobs whose ids were taken.
 */
export function countInserted({ link, ns }: Session, jobs: readonly NewJob[], tag: number): void {
  const groups = perGroup(jobs);
  const [first] = groups;
  if (first === undefined) return;
  if (groups.length === 1) {
    link.write(
      sql`insert into escapement_count_changes (${columns}) values (${ns}, 'all', ${first.queue}, ${first.name}, row_count(), 0)`,
    );
    return;
  }
  // Only if some existed before must the server look up which.
  const every = groups.map(
    (group) =>
      sql`select ${ns}, 'all', ${group.queue}, ${group.name}, ${group.jobs}, 0 from dual where row_count() = ${jobs.length}`,
  );
  const some = addedSince(
    fixed("last_insert_id()"),
    tag,
    sql`row_count() > 0 and row_count() < ${jobs.length}`,
  );
  link.write(sql`insert into escapement_count_changes (${columns}) ${join([...every, some], " union all ")}`);
}

/** Jobs of one call have rising numbers, and are the last ones except for those that others add at the same moment. */
function addedSince(seq: Sql | number, tag: number, condition: Sql): Sql {
  return sql`select ns, 'all', queue, name, count(*), 0 from escapement_jobs force index (primary)
    where seq >= ${seq} and born = ${tag} and ${condition} group by ns, queue, name`;
}

/**
 * Counts what statements added, once they have been answered. A repeated call may find its own jobs, with its tag: the first number
 * assigned shows which are new.
 *
 * @param known ids that another call added.
 */
export function countAdded(
  session: Session,
  jobs: readonly NewJob[],
  inserts: readonly Answer[],
  tag: number,
  known: ReadonlyMap<string, string>,
): void {
  const { link } = session;
  const affected = inserts.reduce((sum, answer) => sum + answer.affected, 0);
  const given = inserts.flatMap(({ insertId }) => (insertId > 0 ? [insertId] : []));
  // A caller's transaction is never repeated, and reading its own writes would lock what others add.
  const isKnown = session.foreign || (link.countsChanges && affected === jobs.length);
  if (isKnown) writeCounts(session, "all", perGroup(jobs.filter(({ id }) => !known.has(id))), 0);
  else if (given.length > 0) {
    const added = addedSince(Math.min(...given), tag, fixed("true"));
    link.write(sql`insert into escapement_count_changes (${columns}) ${added}`);
  }
}

/** Before ended jobs are forgotten. */
export function countForgotten({ link }: Session, seqs: readonly number[]): void {
  for (const kind of ["'all'", "state"]) {
    link.write(
      sql`insert into escapement_count_changes (${columns})
        select ns, ${fixed(kind)}, queue, name, -count(*), 0 from escapement_jobs where seq in (${seqs}) group by 1, 2, 3, 4`,
    );
  }
}

/** How many rows are folded at once. */
const foldAtOnce = 5_000;

/**
 * Adds up what calls have counted, in all namespaces, so readers have little left to add. Rows of open transactions are not visible,
 * and not waited for. Returns whether there are more.
 */
export async function foldCounts({ link }: Session): Promise<boolean> {
  const { rows: listed } = await link.query(
    sql`select entry from escapement_count_changes order by entry limit ${foldAtOnce}`,
  );
  if (listed.length === 0) return false;
  // Another reaper may take them, too: this one waits for it, so rows are folded in order.
  const { rows } = await link.query(
    sql`select entry from escapement_count_changes where entry in (${listed.map(([entry]) => numberOf(entry))})
      order by entry for update`,
  );
  if (rows.length > 0) {
    const held = sql`entry in (${rows.map(([entry]) => numberOf(entry))})`;
    link.write(
      sql`insert into escapement_counts (${columns})
        select ns, kind, queue, name, sum(jobs), max(last_seq) from escapement_count_changes where ${held} group by ns, kind, queue, name
        on duplicate key update jobs = escapement_counts.jobs + values(jobs),
          last_seq = greatest(escapement_counts.last_seq, values(last_seq))`,
    );
    link.write(sql`delete from escapement_count_changes where ${held}`);
    // A queue and name without jobs needs no row.
    link.write(sql`delete from escapement_counts where jobs = 0`);
  }
  return listed.length === foldAtOnce;
}

/** How many jobs there are of each queue, name and state, without reading them; only active and blocked ones are counted now. */
export async function readCounts({ link, ns }: Session): Promise<Required<CountRow>[]> {
  const standing = (kind: string, lines: readonly string[]): Sql =>
    sql`select ${kind} as kind, j.queue, j.name, count(*) from escapement_lines as l
      straight_join escapement_jobs as j force index (escapement_jobs_line) on j.line = l.line
      where l.ns = ${ns} and l.kind in (${lines}) group by j.queue, j.name`;
  // One statement, so everything is as of one moment.
  const { rows } = await link.query(
    sql`select kind, queue, name, sum(jobs) from (
        select kind, queue, name, jobs from escapement_counts where ns = ${ns}
        union all select kind, queue, name, jobs from escapement_count_changes where ns = ${ns}) as kept group by kind, queue, name
      union all ${standing("active", ["active", "named"])}
      union all ${standing("blocked", ["blocked"])}`,
  );
  return byState(
    rows.map((row) => ({
      kind: kindOf(row[0]),
      queue: textOf(row[1]),
      name: textOf(row[2]),
      jobs: numberOf(row[3]),
    })),
  );
}

/** No job that has ended in one of these states has a higher seq. */
export function lastEnded(ns: number, states: readonly JobState[]): Sql {
  return sql`select max(last_seq) from (
    select last_seq from escapement_counts where ns = ${ns} and kind in (${states})
    union all select last_seq from escapement_count_changes where ns = ${ns} and kind in (${states})) as ended`;
}

const kinds = ["all", "active", "blocked", "succeeded", "dead", "lost", "cancelled"] as const;

function kindOf(value: unknown): KeptCount["kind"] {
  const text = textOf(value);
  return kinds.find((kind) => kind === text) ?? "dead";
}
