import type { Depths } from "../../store/questions.ts";
import { instantOf } from "../../unreadable.ts";
import {
  type DepthPart,
  depthsOf,
  lookedPerGroup,
  maxLooked,
  type PlainGroup,
  plainParts,
  plainWaiting,
} from "../queue-depth.ts";
import { readCounts } from "./jobs/counts.ts";
import { listOf, numberOf, numberOrNull, textOf, tuplesOf } from "./rows.ts";
import type { Session } from "./session.ts";

/** How much of each group of turns was read; see {@link lookedPerGroup}. */
const most = `(select greatest(1000, ${maxLooked} / greatest(1, count(*))) from groups)`;

/** Finds groups of turns one after the other in their index, and reads each on both sides of now. */
const questionOf = ({ schema, functions }: Session): string => {
  const turns = `${schema}.turns t where t.ns = $1`;
  const own = `${turns} and t.queue = g.queue and t.name = g.name and t.rank = g.rank`;
  const shelved = ["lane", "fragile", "relay"].map(
    (shelf) =>
      `select queue, count(*) as jobs, count(*) filter (where run_at <= moment.now) as due, min(run_at) as first_at
       from moment cross join ${schema}.jobs where ns = $1 and shelf = '${shelf}' group by queue`,
  );
  return `with recursive moment as materialized (select ${functions}.now_ms($2::bigint) as now),
    groups as (
      (select queue, name, rank from ${turns} order by queue, name, rank limit 1)
      union all
      select next.* from groups g cross join lateral (
        select t.queue, t.name, t.rank from ${turns} and (t.queue, t.name, t.rank) > (g.queue, g.name, g.rank)
        order by t.queue, t.name, t.rank limit 1) next
    )
    select json_build_array((select now from moment), (
      select coalesce(json_agg(json_build_array(g.queue, due.jobs, later.jobs, due.first_at)), '[]')
      from moment cross join groups g
      cross join lateral (select count(*) as jobs, min(run_at) as first_at from (
        select run_at from ${own} and t.run_at <= moment.now order by t.queue, t.name, t.rank, t.run_at limit ${most}) seen) due
      cross join lateral (select count(*) as jobs from (
        select from ${own} and t.run_at > moment.now order by t.queue, t.name, t.rank, t.run_at limit ${most}) seen) later
    ), (select coalesce(json_agg(json_build_array(queue, jobs, due, first_at)), '[]') from (${shelved.join(" union all ")}) elsewhere)
    )::text as answer`;
};

export async function depths(session: Session): Promise<Depths> {
  const counts = await readCounts(session);
  const [at, looked, elsewhere] = listOf(await session.run(questionOf(session), [session.ns, session.now]));
  const now = numberOf(at);
  const groups = tuplesOf(looked).map(
    ([queue, due, later, firstAt]): PlainGroup => ({
      queue: textOf(queue),
      due: numberOf(due),
      later: numberOf(later),
      firstAt: numberOrNull(firstAt),
    }),
  );
  const shelved = tuplesOf(elsewhere).map(
    ([queue, jobs, due, firstAt]): DepthPart => ({
      queue: textOf(queue),
      state: "waiting",
      jobs: numberOf(jobs),
      due: numberOf(due),
      firstAt: numberOrNull(firstAt),
    }),
  );
  const held = counts.flatMap(({ queue, state, count }): DepthPart[] =>
    state === "active" || state === "blocked" ? [{ queue, state, jobs: count, due: 0, firstAt: null }] : [],
  );
  const plain = plainParts(groups, lookedPerGroup(groups.length), plainWaiting(counts, shelved));
  return { now: instantOf(now), queues: depthsOf([...plain, ...shelved, ...held], now) };
}
