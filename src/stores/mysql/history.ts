import {
  fromNumbers,
  type History,
  type HistoryEntry,
  type HistoryParams,
  highestColumns,
  historyLevels,
  historySteps,
  leveled,
  type RecordHistoryParams,
  seriesFor,
  seriesOf,
  stepMs,
  summedColumns,
  toNumbers,
} from "../../history.ts";
import type { PruneParams } from "../../store/reaping.ts";
import { addedUp } from "../risen.ts";
import { fixed, join, now, type Sql, sql } from "./connection/sql.ts";
import { dateOf, numberOf, textOf } from "./rows.ts";
import type { Session } from "./session.ts";

const columns = [...summedColumns, ...highestColumns];

const merge = fixed(
  [
    ...summedColumns.map((column) => `${column} = ${addedUp("least", column, `values(${column})`)}`),
    ...highestColumns.map((column) => `${column} = greatest(${column}, values(${column}))`),
  ].join(", "),
);

/** The writer's row is locked first: a repeated call waits for the first one if that is still in progress, and then finds its sequence. */
export async function recordHistory(
  { link, ns }: Session,
  { node, sequence, entries }: RecordHistoryParams,
): Promise<void> {
  link.write(
    sql`insert ignore into escapement_history_writers (ns, node, sequence, seen_at) values (${ns}, ${node}, 0, ${now})`,
  );
  const { rows } = await link.query(
    sql`select sequence from escapement_history_writers where ns = ${ns} and node = ${node} for update`,
  );
  if (numberOf(rows[0]?.[0] ?? 0) >= sequence) return;
  link.write(
    sql`update escapement_history_writers set sequence = ${sequence}, seen_at = ${now} where ns = ${ns} and node = ${node}`,
  );
  if (entries.length === 0) return;
  link.write(
    sql`insert into escapement_history (ns, series, at, queue, name, ${fixed(columns.join(", "))}) values ${join(rowsOf(ns, entries), ", ")}
      on duplicate key update ${merge}`,
  );
}

/** In key order, so concurrent calls lock them in the same order. */
function rowsOf(ns: number, entries: readonly HistoryEntry[]): Sql[] {
  const sorted = leveled(entries).toSorted(
    (a, b) =>
      compare(a.level, b.level) || b.agoMs - a.agoMs || compare(a.queue, b.queue) || compare(a.name, b.name),
  );
  return historySteps.flatMap((step) =>
    sorted.map((entry) => {
      const instant = sql`${now} - ${entry.agoMs}`;
      const at = sql`(${instant}) - ((${instant}) mod ${stepMs[step]})`;
      return sql`(${ns}, ${seriesOf(entry.level, step)}, ${at}, ${entry.queue}, ${entry.name}, ${toNumbers(entry)})`;
    }),
  );
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** A sum is a decimal, which clients return as a string. */
const sums = fixed(
  [
    ...summedColumns.map((column) => `cast(sum(${column}) as signed)`),
    ...highestColumns.map((column) => `max(${column})`),
  ].join(", "),
);

export async function history({ link, ns }: Session, params: HistoryParams): Promise<History> {
  const { since, until, queue, name, by, limit } = params;
  const terms = [
    sql`ns = ${ns} and series = ${seriesFor(params)} and at >= ${since.getTime()} and at < ${until.getTime()}`,
    ...(queue === undefined ? [] : [sql`queue = ${queue}`]),
    ...(name === undefined ? [] : [sql`name = ${name}`]),
  ];
  const group = fixed(by === null ? "at" : `at, ${by}`);
  const ask = async (where: readonly Sql[]) =>
    await link.query(
      sql`select at, ${fixed(by ?? "null")}, ${sums} from escapement_history
        where ${join(where, " and ")} group by ${group} order by ${group} limit ${limit + 1}`,
    );
  // The server would sum up and sort a whole span to return its beginning. Twice as many rows as points mostly hold them all.
  const { rows: later } =
    by === "name"
      ? await link.query(
          sql`select at from escapement_history where ${join(terms, " and ")} order by at limit 1 offset ${2 * limit}`,
        )
      : { rows: [] };
  const [cut] = later;
  const begun = cut === undefined ? null : await ask([...terms, sql`at <= ${numberOf(cut[0])}`]);
  const { rows } = begun !== null && begun.rows.length > limit ? begun : await ask(terms);
  const points = rows.slice(0, limit).map((row) => ({
    at: dateOf(row[0]),
    ...(by === null ? {} : { [by]: textOf(row[1]) }),
    ...fromNumbers(row.slice(2).map(numberOf)),
  }));
  return { points, more: rows.length > limit };
}

/** Whether there are more. */
export async function pruneHistory(
  { link, ns }: Session,
  { historyMs, nodesMs, limit }: PruneParams,
): Promise<boolean> {
  link.write(
    sql`delete from escapement_history_writers where ns = ${ns} and seen_at <= ${now} - ${Math.trunc(nodesMs)}`,
  );
  if (historyMs === undefined) return false;
  const series = historySteps.flatMap((step) => historyLevels.map((level) => ({ step, level })));
  const answers = series.map(({ step, level }) => {
    const isOld = sql`ns = ${ns} and series = ${seriesOf(level, step)} and at <= ${now} - ${Math.trunc(historyMs[step])}`;
    link.write(sql`delete from escapement_history where ${isOld} order by at limit ${limit}`);
    return link.query(sql`select 1 from escapement_history where ${isOld} limit 1`);
  });
  return (await Promise.all(answers)).some(({ rows }) => rows.length > 0);
}
