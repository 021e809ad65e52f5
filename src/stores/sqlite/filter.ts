import type { SQLInputValue } from "node:sqlite";
import type { JobState } from "../../job.ts";
import { isTerminal } from "../../state.ts";
import type { JobFilter } from "../../store.ts";

/** A part of the jobs that one scan of one index covers. */
export interface Source {
  readonly table: "escapement_jobs" | "escapement_history";
  readonly hint: string;
  readonly condition: string;
}

const byOrder = "not indexed";
const hot: Source = { table: "escapement_jobs", hint: byOrder, condition: "true" };
const history: Source = { table: "escapement_history", hint: byOrder, condition: "true" };

/**
 * Where jobs of a state are found. Rare states have an index of their own; the common ones are read in the order of
 * enqueueing, which is the order of the table itself.
 */
const sourcesByState: Readonly<Record<JobState, readonly Source[]>> = {
  waiting: [{ ...hot, condition: "state = 'waiting'" }],
  blocked: [{ ...hot, hint: "indexed by escapement_jobs_blocked", condition: "state = 'blocked'" }],
  active: [
    { ...hot, hint: "indexed by escapement_jobs_active", condition: "state = 'active' and relayed = 0" },
    { ...hot, hint: "indexed by escapement_jobs_named", condition: "state = 'active' and relayed = 1" },
  ],
  succeeded: [{ ...history, condition: "state = 'succeeded'" }],
  dead: [notable("dead")],
  lost: [notable("lost")],
  cancelled: [notable("cancelled")],
};

function notable(state: JobState): Source {
  return {
    ...history,
    hint: "indexed by escapement_history_notable",
    condition: `state = '${state}' and state <> 'succeeded'`,
  };
}

/** The scans that together cover what the filter can match, none of them twice. */
export function sourcesOf(filter: JobFilter): readonly Source[] {
  if (filter.ids !== undefined) return sourcesById(filter);
  if (filter.states === undefined) return [hot, history];
  return [...new Set(filter.states)].flatMap((state) => sourcesByState[state]);
}

function sourcesById({ states }: JobFilter): readonly Source[] {
  const sources: Source[] = [];
  if (states === undefined || states.some((state) => !isTerminal(state))) {
    sources.push({ ...hot, hint: "indexed by escapement_jobs_id" });
  }
  if (states === undefined || states.some(isTerminal)) {
    sources.push({ ...history, hint: "indexed by escapement_history_id" });
  }
  return sources;
}

/** The filter as a condition in SQL with its values, after `ns = ?`. */
export function conditionOf(filter: JobFilter): { readonly sql: string; readonly values: SQLInputValue[] } {
  const terms: string[] = [];
  const values: SQLInputValue[] = [];
  const oneOf = (column: string, allowed: readonly string[] | undefined): void => {
    if (allowed === undefined) return;
    terms.push(`${column} in (select value from json_each(?))`);
    values.push(JSON.stringify(allowed));
  };
  const compare = (term: string, value: string | Date | undefined): void => {
    if (value === undefined) return;
    terms.push(term);
    values.push(value instanceof Date ? value.getTime() : value);
  };
  oneOf("id", filter.ids);
  oneOf("state", filter.states);
  oneOf("name", filter.names);
  oneOf("queue", filter.queues);
  oneOf("delivery", filter.deliveries);
  for (const tag of filter.tags ?? []) compare(hasTag, tag);
  compare("schedule = ?", filter.schedule);
  compare("enqueued_at >= ?", filter.enqueuedAfter);
  compare("enqueued_at < ?", filter.enqueuedBefore);
  compare("run_at >= ?", filter.runAfter);
  compare("run_at < ?", filter.runBefore);
  return { sql: terms.map((term) => ` and ${term}`).join(""), values };
}

/** Tags that are no JSON are none: the question goes on. */
const hasTag = "? in (select value from json_each(case when json_valid(tags) then tags else '[]' end))";
