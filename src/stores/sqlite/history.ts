import type { SQLInputValue } from "node:sqlite";
import {
  fromNumbers,
  type History,
  type HistoryParams,
  highestColumns,
  historyLevels,
  historySteps,
  leveled,
  type RecordHistoryParams,
  seriesFor,
  seriesOf,
  stepAt,
  summedColumns,
  toNumbers,
} from "../../history.ts";
import type { PruneParams } from "../../store/reaping.ts";
import { addedUp } from "../risen.ts";
import { dateOf, numberOf, textOf } from "./rows.ts";
import type { Session } from "./session.ts";

const columns = [...summedColumns, ...highestColumns];

const addRow = `insert into escapement_history (ns, series, at, queue, name, ${columns.join(", ")})
  values (${Array.from({ length: 5 + columns.length }, () => "?").join(", ")})
  on conflict (ns, series, at, queue, name) do update set
    ${summedColumns.map((column) => `${column} = ${addedUp("min", column, `excluded.${column}`)}`).join(", ")},
    ${highestColumns.map((column) => `${column} = max(${column}, excluded.${column})`).join(", ")}`;

/** A repeated call returns nothing and adds nothing. */
const begin = `insert into escapement_history_writers (ns, node, sequence, seen_at) values (?, ?, ?, ?)
  on conflict (ns, node) do update set sequence = excluded.sequence, seen_at = excluded.seen_at
    where sequence < excluded.sequence
  returning sequence`;

export function recordHistory(
  { connection, ns, now }: Session,
  { node, sequence, entries }: RecordHistoryParams,
): void {
  if (connection.all(begin, ns, node, sequence, now).length === 0) return;
  for (const entry of leveled(entries)) {
    const { level, agoMs, queue, name } = entry;
    const numbers = toNumbers(entry);
    for (const step of historySteps)
      connection.run(addRow, ns, seriesOf(level, step), stepAt(step, now - agoMs), queue, name, ...numbers);
  }
}

export function history({ connection, ns }: Session, params: HistoryParams): History {
  const { since, until, queue, name, by, limit } = params;
  const terms: string[] = [];
  const values: SQLInputValue[] = [ns, seriesFor(params), since.getTime(), until.getTime()];
  for (const [column, value] of Object.entries({ queue, name })) {
    if (value === undefined) continue;
    terms.push(` and ${column} = ?`);
    values.push(value);
  }
  const group = by === null ? "at" : `at, ${by}`;
  const sums = [
    ...summedColumns.map((column) => `sum(${column}) as ${column}`),
    ...highestColumns.map((column) => `max(${column}) as ${column}`),
  ];
  const rows = connection.once(
    `select ${group}, ${sums.join(", ")} from escapement_history
     where ns = ? and series = ? and at >= ? and at < ?${terms.join("")} group by ${group} order by ${group} limit +?`,
    ...values,
    limit + 1,
  );
  const points = rows.slice(0, limit).map((row) => ({
    at: dateOf(row["at"]),
    ...(by === null ? {} : { [by]: textOf(row[by]) }),
    ...fromNumbers(columns.map((column) => numberOf(row[column]))),
  }));
  return { points, more: rows.length > limit };
}

const oldRows = `select ns, series, at, queue, name from escapement_history
  where ns = ? and series = ? and at <= ? order by at limit +?`;

/** Whether there are more. */
export function pruneHistory(
  { connection, ns, now }: Session,
  { historyMs, nodesMs, limit }: PruneParams,
): boolean {
  connection.run(
    "delete from escapement_history_writers where ns = ? and seen_at <= ?",
    ns,
    Math.trunc(now - nodesMs),
  );
  if (historyMs === undefined) return false;
  let more = false;
  for (const step of historySteps) {
    const before = Math.trunc(now - historyMs[step]);
    for (const level of historyLevels) {
      const series = seriesOf(level, step);
      connection.run(
        `delete from escapement_history where (ns, series, at, queue, name) in (${oldRows})`,
        ns,
        series,
        before,
        limit,
      );
      more ||= connection.all(oldRows, ns, series, before, 1).length > 0;
    }
  }
  return more;
}
