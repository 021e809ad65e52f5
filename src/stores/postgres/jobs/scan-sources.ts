import type { ScanFilter, ScanParams } from "../../../store/questions.ts";
import type { ScanPlace } from "../../scan-place.ts";
import type { Value } from "../connection/link.ts";
import { conditionOf, sourcesOf } from "./filter.ts";

/**
 * Queries for `at` and `seq` of what a scan may look at, up to one more than it does ($2), in the namespace $1. Together they cover the
 * filter's states.
 */
export function byEnqueueing(
  schema: string,
  { filter, order }: ScanParams,
  from: ScanPlace | null,
  values: Value[],
): string[] {
  const oldest = order === "oldest";
  const byId = conditionOf(filter.ids === undefined ? {} : { ids: filter.ids }, values);
  const behind = from === null ? "" : ` and seq ${oldest ? ">" : "<"} ${placed(values, from.seq)}`;
  const direction = oldest ? "asc" : "desc";
  const parts = sourcesOf(filter).map(
    ({ table, condition }) =>
      `(select 0 as at, seq from ${schema}.${table} where ns = $1 and ${condition}${byId}${behind}
        order by seq ${direction} limit $2 + 1)`,
  );
  const isWaiting = filter.ids === undefined && filter.states?.every((state) => state === "waiting");
  return isWaiting && parts.length > 0 ? [waitingFirst(schema, parts, behind, direction)] : parts;
}

/**
 * Turns are in the order of claims, so a million of them would be sorted for a page. As a rule the jobs next in the order of enqueueing have enough
 * that wait; the turns are read where they have not.
 */
function waitingFirst(
  schema: string,
  parts: readonly string[],
  behind: string,
  direction: "asc" | "desc",
): string {
  return `(with near as materialized (
      select seq from (select seq, blocked from ${schema}.jobs where ns = $1${behind} order by seq ${direction} limit 2 * $2 + 1000) j
      where not blocked and not exists (select from ${schema}.ended e where e.seq = j.seq)
        and not exists (select from ${schema}.active a where a.seq = j.seq)
      order by seq ${direction} limit $2 + 1)
    select 0 as at, seq from near
    union select at, seq from (${parts.join(" union all ")}) every where (select count(*) from near) <= $2)`;
}

/**
 * Index: ended_kept, and ended_finished, or of jobs that succeeded successes_finished. A success with its own retention is in two of them until
 * prune has passed its row.
 */
export function byEnd(
  schema: string,
  { filter, order }: ScanParams,
  from: ScanPlace | null,
  values: Value[],
): string[] {
  const [direction, behind] = order === "oldest" ? ["asc", ">"] : ["desc", "<"];
  const span = spanOf(filter, values);
  const [at, seq] = from === null ? ["", ""] : [placed(values, from.at), placed(values, from.seq)];
  const beyond = from === null ? "" : ` and (finished_at, seq) ${behind} (${at}, ${seq})`;
  return (filter.states ?? []).flatMap((state) => {
    const ended = (condition: string): string =>
      `(select finished_at as at, seq from ${schema}.ended
        where ns = $1 and state = '${state}' and ${condition}${span}${beyond}
        order by finished_at ${direction}, seq ${direction} limit $2 + 1)`;
    const kept = ended("forget_at is not null");
    if (state !== "succeeded") return [kept, ended("state <> 'succeeded' and forget_at is null")];
    // A row has the jobs of a call. Of several with one time none may be left out: the jobs of one may stand between those of another.
    const calls = (condition: string): string =>
      `(select finished_at, seqs from ${schema}.successes where ns = $1${span}${condition}
        order by finished_at ${direction} fetch first ($2 + 1) rows with ties)`;
    const found =
      from === null
        ? calls("")
        : `${calls(` and finished_at ${behind} ${at}`)} union all
           select finished_at, seqs from ${schema}.successes where ns = $1${span} and finished_at = ${at}`;
    const succeeded = `(select finished_at as at, seq from (${found} union all
        select finished_at, seqs from ${schema}.fresh_successes where ns = $1${span}) calls cross join unnest(seqs) seq
      where true${beyond} order by finished_at ${direction}, seq ${direction} limit $2 + 1)`;
    return [kept, succeeded];
  });
}

/** When they ended, as conditions. */
export function spanOf({ endedAfter, endedBefore }: ScanFilter, values: Value[]): string {
  const after = endedAfter && ` and finished_at >= ${placed(values, endedAfter.getTime())}`;
  const before = endedBefore && ` and finished_at < ${placed(values, endedBefore.getTime())}`;
  return `${after ?? ""}${before ?? ""}`;
}

function placed(values: Value[], value: number): string {
  values.push(value);
  return `$${values.length}::bigint`;
}
