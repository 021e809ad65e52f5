import type { SQLInputValue } from "node:sqlite";
import type { JobState } from "../../../job.ts";
import type { JobFilter } from "../../../store/questions.ts";

/** A part of the jobs: the table or index that holds them in enqueue order. */
export interface Source {
  readonly table: "escapement_jobs" | "escapement_open" | "escapement_active" | "escapement_ended";
  /** Which of its rows; the first value is the number of the namespace. */
  readonly condition: string;
  /** Only the jobs in this state; null: all of them. */
  readonly state: JobState | null;
}

/** A plus keeps SQLite from using an index with another order. */
const inNamespace = "+ns = ?";
const everything: Source = { table: "escapement_jobs", condition: inNamespace, state: null };

/** Where jobs of a state are found. Rare states have their own index. */
const sourcesByState: Readonly<Record<JobState, Source>> = {
  waiting: { table: "escapement_open", condition: inNamespace, state: "waiting" },
  blocked: { table: "escapement_jobs", condition: "ns = ? and blocked = 1", state: "blocked" },
  active: { table: "escapement_active", condition: inNamespace, state: "active" },
  succeeded: {
    table: "escapement_ended",
    condition: `${inNamespace} and +state = 'succeeded'`,
    state: "succeeded",
  },
  dead: notable("dead"),
  lost: notable("lost"),
  cancelled: notable("cancelled"),
};

function notable(state: JobState): Source {
  const condition = `ns = ? and state = '${state}' and state <> 'succeeded'`;
  return { table: "escapement_ended", condition, state };
}

/** The scans that together cover the filter without overlap. What they return must still be checked against the rest of it. */
export function sourcesOf({ ids, states }: JobFilter): readonly Source[] {
  if (ids !== undefined || states === undefined) return [everything];
  return [...new Set(states)].map((state) => sourcesByState[state]);
}

/** The filter as an SQL condition with its values, after `ns = ?`. */
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

/** Tags that are not JSON count as none: the query must not fail. */
const hasTag = "? in (select value from json_each(case when json_valid(tags) then tags else '[]' end))";
