import type { JobState } from "../../job.ts";
import { isTerminal } from "../../state.ts";
import type { JobFilter } from "../../store.ts";
import { textList } from "./encode.ts";
import type { Value } from "./link.ts";

/** The tables in which jobs of the filter can be. */
export function tablesOf({ states }: JobFilter): ("jobs" | "history")[] {
  const among = (terminal: boolean): boolean =>
    states === undefined || states.some((state: JobState) => isTerminal(state) === terminal);
  return (["jobs", "history"] as const).filter((table) => among(table === "history"));
}

/** The filter as conditions in SQL; its values are added to the list. */
export function conditionOf(filter: JobFilter, values: Value[]): string {
  const terms: string[] = [];
  const compare = (term: string, type: string, value: Value | Date | undefined): void => {
    if (value === undefined) return;
    values.push(value instanceof Date ? value.getTime() : value);
    terms.push(` and ${term.replace("?", `$${values.length}::${type}`)}`);
  };
  const oneOf = (column: string, allowed: readonly string[] | undefined): void =>
    compare(`${column} = any (?)`, "text::text[]", allowed && textList(allowed));
  oneOf("id", filter.ids);
  oneOf("state", filter.states);
  oneOf("name", filter.names);
  oneOf("queue", filter.queues);
  oneOf("delivery", filter.deliveries);
  compare("tags @> ?", "text::text[]", filter.tags && textList(filter.tags));
  compare("schedule = ?", "text", filter.schedule);
  compare("enqueued_at >= ?", "bigint", filter.enqueuedAfter);
  compare("enqueued_at < ?", "bigint", filter.enqueuedBefore);
  compare("run_at >= ?", "bigint", filter.runAfter);
  compare("run_at < ?", "bigint", filter.runBefore);
  return terms.join("");
}
