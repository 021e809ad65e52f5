import type { JobState } from "../../../job.ts";
import { isTerminal } from "../../../state.ts";
import type { JobFilter } from "../../../store/questions.ts";
import { fixed, join, type Sql, sql } from "../connection/sql.ts";
import type { Session } from "../session.ts";

/** Where to read the jobs that a filter can match. */
export interface Source {
  readonly hint: Sql;
  readonly range: Sql;
  /** Whether the range holds exactly the jobs of the filter's states: then its index alone is enough. */
  readonly isOfStates: boolean;
}

/** Which index to read for the jobs that a filter can match. */
export function indexFor({ lines }: Session, filter: JobFilter): Source {
  if (filter.ids !== undefined) {
    const hint = fixed("force index (escapement_jobs_id)");
    return { hint, range: fixed("true"), isOfStates: false };
  }
  const rare = filter.states?.filter((state) => state !== "succeeded" && state !== "waiting");
  if (filter.states === undefined || rare?.length !== filter.states.length) {
    // The common states are read in enqueue order, which is the order of the table itself.
    return { hint: fixed("force index (primary)"), range: fixed("true"), isOfStates: false };
  }
  const ranges = [...new Set(rare)].flatMap((state) => linesOf(lines, state));
  const hint = fixed("force index (escapement_jobs_line)");
  return { hint, range: sql`j.line in (${ranges})`, isOfStates: true };
}

function linesOf(lines: Session["lines"], state: JobState): number[] {
  if (state === "active") return [...lines.active, ...lines.inSlots("named")];
  return isTerminal(state) || state === "blocked" ? [lines.common(state as "dead")] : [];
}

/** The filter as a condition on escapement_jobs as j. Aliases are not jobs. */
export function conditionOf({ ns }: Session, filter: JobFilter): Sql {
  const terms: Sql[] = [sql`j.ns = ${ns}`, sql`j.state <> 'alias'`];
  const oneOf = (column: string, allowed: readonly string[] | undefined): void => {
    if (allowed !== undefined) terms.push(sql`${fixed(column)} in (${allowed})`);
  };
  const compare = (column: string, instant: Date | undefined): void => {
    if (instant !== undefined) terms.push(sql`${fixed(column)} ${instant.getTime()}`);
  };
  oneOf("j.id", filter.ids);
  oneOf("j.state", filter.states);
  oneOf("j.name", filter.names);
  oneOf("j.queue", filter.queues);
  oneOf("j.delivery", filter.deliveries);
  // Tags that are not JSON count as none: the query must not fail.
  for (const tag of filter.tags ?? [])
    terms.push(sql`json_contains(if(json_valid(j.tags), j.tags, '[]'), ${JSON.stringify(tag)})`);
  if (filter.schedule !== undefined) terms.push(sql`j.schedule = ${filter.schedule}`);
  compare("j.enqueued_at >=", filter.enqueuedAfter);
  compare("j.enqueued_at <", filter.enqueuedBefore);
  compare("j.run_at >=", filter.runAfter);
  compare("j.run_at <", filter.runBefore);
  return join(terms, " and ");
}
