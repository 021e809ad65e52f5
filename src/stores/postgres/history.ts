import {
  fromNumbers,
  type History,
  type HistoryParams,
  highestColumns,
  historyLevels,
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
import { toJson } from "./connection/encode.ts";
import type { Value } from "./connection/link.ts";
import { dateOf, listOf, numberOf, textOf, tuplesOf } from "./rows.ts";
import type { Session } from "./session.ts";

const columns = [...summedColumns, ...highestColumns];
const list = columns.join(", ");

const sums = [
  ...summedColumns.map((column) => `sum(${column}) as ${column}`),
  ...highestColumns.map((column) => `max(${column}) as ${column}`),
].join(", ");

const merge = [
  ...summedColumns.map(
    (column) => `${column} = ${addedUp("least", `history.${column}`, `excluded.${column}`)}`,
  ),
  ...highestColumns.map((column) => `${column} = greatest(history.${column}, excluded.${column})`),
].join(", ");

/** Of an entry: its level, how long ago, its queue and name, then the figures. */
const given = ["e->>0 as level", "(e->>1)::bigint as ago", "e->>2 as queue", "e->>3 as name"]
  .concat(columns.map((column, index) => `(e->>${index + 4})::bigint as ${column}`))
  .join(", ");

/**
 * One statement. A sequence that is not new returns no writer, so it adds nothing. Rows are sorted, so concurrent calls lock them in
 * the same order.
 */
export async function recordHistory(
  session: Session,
  { node, sequence, entries }: RecordHistoryParams,
): Promise<void> {
  const { schema, functions } = session;
  await session.run(
    `with moment as materialized (select ${functions}.now_ms($2::bigint) as now),
     writer as (
       insert into ${schema}.history_writers (ns, node, sequence, seen_at) select $1::integer, $3::text, $4::bigint, now from moment
       on conflict (ns, node) do update set sequence = excluded.sequence, seen_at = excluded.seen_at
         where history_writers.sequence < excluded.sequence
       returning 1),
     written as (
       insert into ${schema}.history (ns, series, at, queue, name, ${list})
       select $1::integer, level || '-' || step as series, (now - ago) - (now - ago) % ms as at, queue, name, ${sums}
       from writer cross join moment cross join (select ${given} from jsonb_array_elements($5::text::jsonb) e) given
         cross join (values ('minute', ${stepMs.minute}::bigint), ('hour', ${stepMs.hour}::bigint)) steps (step, ms)
       group by level, step, at, queue, name order by level collate "C", step, at, queue collate "C", name collate "C"
       on conflict (ns, series, at, queue, name) do update set ${merge}
       returning 1)
     select count(*)::text as answer from written`,
    [
      session.ns,
      session.now,
      node,
      sequence,
      toJson(leveled(entries).map((row) => [row.level, row.agoMs, row.queue, row.name, ...toNumbers(row)])),
    ],
  );
}

export async function history(session: Session, params: HistoryParams): Promise<History> {
  const { since, until, queue, name, by, limit } = params;
  const values: Value[] = [session.ns, seriesFor(params), since.getTime(), until.getTime(), limit + 1];
  const terms = Object.entries({ queue, name }).flatMap(([column, value]) =>
    value === undefined ? [] : ` and ${column} = $${values.push(value)}`,
  );
  const group = by === null ? "at" : `at, ${by}`;
  const answer = await session.run(
    `select coalesce(json_agg(json_build_array(at, ${by ?? "null"}, ${list}) order by ${group}), '[]')::text as answer from (
       select ${group}, ${sums} from ${session.schema}.history
       where ns = $1 and series = $2 and at >= $3::bigint and at < $4::bigint${terms.join("")}
       group by ${group} order by ${group} limit $5) page`,
    values,
  );
  const rows = tuplesOf(answer);
  const points = rows.slice(0, limit).map(([at, of, ...numbers]) => ({
    at: dateOf(at),
    ...(by === null ? {} : { [by]: textOf(of) }),
    ...fromNumbers(numbers.map(numberOf)),
  }));
  return { points, more: rows.length > limit };
}

/** Whether there are more. Rows that another node is deleting are left to it. */
export async function pruneHistory(
  session: Session,
  { historyMs, nodesMs, limit }: PruneParams,
): Promise<boolean> {
  const { schema, functions } = session;
  const isOld = (series: string, keptMs: string): string =>
    `select at, queue, name from ${schema}.history where ns = $1 and series = '${series}' and at <= (select now from moment) - ${keptMs}::bigint`;
  // A separate step, so it runs once: inside the delete it could run again for each row, and find other rows that are not locked.
  const gone = (series: string, keptMs: string, n: number): string =>
    `old_${n} as materialized (${isOld(series, keptMs)} order by at limit $6 for update skip locked),
     gone_${n} as (delete from ${schema}.history h using old_${n} old
       where h.ns = $1 and h.series = '${series}' and (h.at, h.queue, h.name) = (old.at, old.queue, old.name))`;
  const all = historyLevels.flatMap((level) => [
    { series: seriesOf(level, "minute"), keptMs: "$4" },
    { series: seriesOf(level, "hour"), keptMs: "$5" },
  ]);
  const answer = await session.run(
    `with moment as materialized (select ${functions}.now_ms($2::bigint) as now),
     writers as (delete from ${schema}.history_writers where ns = $1 and seen_at <= (select now from moment) - $3::bigint),
     ${all.map(({ series, keptMs }, n) => gone(series, keptMs, n)).join(",\n     ")}
     select json_build_array(${all.map(({ series, keptMs }) => `exists (${isOld(series, keptMs)} offset $6)`).join(", ")})::text as answer`,
    [
      session.ns,
      session.now,
      Math.trunc(nodesMs),
      historyMs === undefined ? null : Math.trunc(historyMs.minute),
      historyMs === undefined ? null : Math.trunc(historyMs.hour),
      limit,
    ],
  );
  return listOf(answer).includes(true);
}
