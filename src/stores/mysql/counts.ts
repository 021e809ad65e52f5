import type { JobState } from "../../job.ts";
import { byState, type KeptCount, type KeptKind, perGroup } from "../../kept-counts.ts";
import type { EndedState } from "../../state.ts";
import type { CountRow, NewJob } from "../../store.ts";
import type { Answer } from "./link.ts";
import { numberOf, textOf } from "./rows.ts";
import type { Session } from "./session.ts";
import { fixed, join, type Sql, sql } from "./sql.ts";

/** So many jobs of one queue and name were added, ended, came back or are forgotten. */
interface Change {
  readonly queue: string;
  readonly name: string;
  readonly jobs: number;
}

const columns = fixed("ns, kind, queue, name, jobs");

/** Keeps count in this transaction. Rows are only added, so no call waits for another one, nor for a caller's long transaction. */
export function writeCounts({ link, ns }: Session, kind: KeptKind, changes: readonly Change[]): void {
  if (changes.length === 0) return;
  const rows = changes.map(({ queue, name, jobs }) => sql`(${ns}, ${kind}, ${queue}, ${name}, ${jobs})`);
  link.write(sql`insert into escapement_count_changes (${columns}) values ${join(rows, ", ")}`);
}

/** One job has ended, or comes back. */
export function countEnd(
  session: Session,
  { queue, name }: Omit<Change, "jobs">,
  state: JobState,
  jobs: 1 | -1,
): void {
  writeCounts(session, state as EndedState, [{ queue, name, jobs }]);
}

/** The same where the server decides whether it has happened. */
export function writeCountsIf(
  { link, ns }: Session,
  kind: KeptKind,
  changes: readonly Change[],
  condition: Sql,
): void {
  if (changes.length === 0) return;
  link.write(sql`insert into escapement_count_changes (${columns}) ${rowsIf(ns, kind, changes, condition)}`);
}

function rowsIf(ns: number, kind: KeptKind, changes: readonly Change[], condition: Sql): Sql {
  const rows = changes.map(
    ({ queue, name, jobs }) =>
      sql`select ${ns}, ${kind}, ${queue}, ${name}, ${jobs} from dual where ${condition}`,
  );
  return join(rows, " union all ");
}

/**
 * Counts what the last statement added, in the same trip. Only on connections whose row_count() leaves out rows that were there before, as
 * those of jobs whose ids were taken.
 */
export function countInserted({ link, ns }: Session, jobs: readonly NewJob[], tag: number): void {
  const groups = perGroup(jobs);
  const [first] = groups;
  if (first === undefined) return;
  if (groups.length === 1) {
    link.write(
      sql`insert into escapement_count_changes (${columns}) values (${ns}, 'all', ${first.queue}, ${first.name}, row_count())`,
    );
    return;
  }
  // Only where some were there before, somebody has to look which.
  const every = rowsIf(ns, "all", groups, sql`row_count() = ${jobs.length}`);
  const some = addedSince(
    fixed("last_insert_id()"),
    tag,
    sql`row_count() > 0 and row_count() < ${jobs.length}`,
  );
  link.write(sql`insert into escapement_count_changes (${columns}) ${every} union all ${some}`);
}

/** Jobs of one call have rising numbers, and are the last ones but for those that others add at the same moment. */
function addedSince(seq: Sql | number, tag: number, condition: Sql): Sql {
  return sql`select ns, 'all', queue, name, count(*) from escapement_jobs force index (primary)
    where seq >= ${seq} and born = ${tag} and ${condition} group by ns, queue, name`;
}

/**
 * Counts what statements added, once they have been answered. A repeated call may find its own jobs, with its tag: the first number that was
 * given tells which are new.
 *
 * @param known ids that another call brought.
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
  // A caller's transaction is never repeated, and to read in it what it writes would lock what others add.
  const isKnown = session.foreign || (link.countsChanges && affected === jobs.length);
  if (isKnown) writeCounts(session, "all", perGroup(jobs.filter(({ id }) => !known.has(id))));
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
        select ns, ${fixed(kind)}, queue, name, -count(*) from escapement_jobs where seq in (${seqs}) group by 1, 2, 3, 4`,
    );
  }
}

/** How many rows are folded at once. */
const foldAtOnce = 5_000;

/**
 * Adds up what calls have counted, of all namespaces, so that those who ask find little left to add. Rows of open transactions are not seen,
 * and waited for by nobody. Returns whether there are more.
 */
export async function foldCounts({ link, skipLocked }: Session): Promise<boolean> {
  const { rows: listed } = await link.query(
    sql`select entry from escapement_count_changes order by entry limit ${foldAtOnce}`,
  );
  if (listed.length === 0) return false;
  // Another reaper may take them, too.
  const { rows } = await link.query(
    sql`select entry from escapement_count_changes where entry in (${listed.map(([entry]) => numberOf(entry))})
      order by entry ${fixed(skipLocked ? "for update skip locked" : "for update")}`,
  );
  if (rows.length > 0) {
    const held = sql`entry in (${rows.map(([entry]) => numberOf(entry))})`;
    link.write(
      sql`insert into escapement_counts (${columns})
        select ns, kind, queue, name, sum(jobs) from escapement_count_changes where ${held} group by ns, kind, queue, name
        on duplicate key update jobs = escapement_counts.jobs + values(jobs)`,
    );
    link.write(sql`delete from escapement_count_changes where ${held}`);
    // A queue and name that no job has any more takes no row.
    link.write(sql`delete from escapement_counts where jobs = 0`);
  }
  return listed.length === foldAtOnce;
}

/** How many jobs of each queue, name and state there are, without looking at them; only active and blocked ones are counted now. */
export async function readCounts({ link, ns }: Session): Promise<Required<CountRow>[]> {
  const standing = (kind: string, lines: readonly string[]): Sql =>
    sql`select ${kind} as kind, j.queue, j.name, count(*) from escapement_lines as l
      straight_join escapement_jobs as j force index (escapement_jobs_line) on j.line = l.line
      where l.ns = ${ns} and l.kind in (${lines}) group by j.queue, j.name`;
  // One statement, so that all of it is as of one moment.
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

const kinds = ["all", "active", "blocked", "succeeded", "dead", "lost", "cancelled"] as const;

function kindOf(value: unknown): KeptCount["kind"] {
  const text = textOf(value);
  return kinds.find((kind) => kind === text) ?? "dead";
}
