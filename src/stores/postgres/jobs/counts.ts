import type { CountRow } from "../../../store/questions.ts";
import { byState, type KeptCount } from "../../kept-counts.ts";
import { numberOf, textOf, tuplesOf } from "../rows.ts";
import type { Session } from "../session.ts";

/** How many jobs there are of each queue, name and state, without reading them; only active and blocked ones are counted now. */
export async function readCounts(session: Session): Promise<Required<CountRow>[]> {
  const { schema, ns } = session;
  const counted = (kind: string, from: string): string =>
    `select '${kind}' as kind, queue, name, count(*) as jobs from ${schema}.${from} group by queue, name`;
  const answer = await session.run(
    `select coalesce(json_agg(json_build_array(kind, queue, name, jobs)), '[]')::text as answer from (
       select kind, queue, name, sum(jobs) as jobs from (
         select kind, queue, name, jobs from ${schema}.counts where ns = $1
         union all select kind, queue, name, jobs from ${schema}.count_changes where ns = $1
         union all select 'succeeded', queue, name, jobs from ${schema}.fresh_successes where ns = $1) kept group by kind, queue, name
       union all ${counted("active", "active where ns = $1")}
       union all ${counted("blocked", "jobs where ns = $1 and blocked")}) every`,
    [ns],
  );
  const kept = tuplesOf(answer).map(
    ([kind, queue, name, jobs]): KeptCount => ({
      kind: kinds.find((one) => one === kind) ?? "dead",
      queue: textOf(queue),
      name: textOf(name),
      jobs: numberOf(jobs),
    }),
  );
  return byState(kept);
}

const kinds = ["all", "active", "blocked", "succeeded", "dead", "lost", "cancelled"] as const;
