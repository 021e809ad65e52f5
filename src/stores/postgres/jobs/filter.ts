import type { JobState } from "../../../job.ts";
import type { JobFilter } from "../../../store/questions.ts";
import { textList } from "../connection/encode.ts";
import type { Value } from "../connection/link.ts";

type Field = Exclude<keyof JobFilter, "states">;

/** A part of the jobs: a table or an index that holds their numbers. */
export interface Source {
  readonly table: "jobs" | "turns" | "active" | "ended";
  /** Which of its rows, beyond the namespace. */
  readonly condition: string;
  /** Their state, in SQL; null if a row does not say. */
  readonly state: string | null;
  /** Which other parts of a filter its rows can answer; null: all of them. */
  readonly own: readonly Field[] | null;
}

const everything: Source = { table: "jobs", condition: "true", state: null, own: null };
const everythingEnded: Source = { table: "ended", condition: "true", state: "state", own: [] };

/** Where jobs of a state are found. The conditions are known at planning time, so a partial index on them can be used. */
const sourcesByState: Readonly<Record<JobState, readonly Source[]>> = {
  waiting: [
    {
      table: "turns",
      condition: "true",
      state: "'waiting'",
      own: ["names", "queues", "runAfter", "runBefore"],
    },
    ...["lane", "fragile", "relay"].map((shelf) => idle("waiting", `shelf = '${shelf}'`)),
  ],
  blocked: [idle("blocked", "blocked")],
  active: [{ table: "active", condition: "true", state: "'active'", own: ["queues"] }],
  succeeded: [{ table: "ended", condition: "state = 'succeeded'", state: "state", own: [] }],
  dead: [notable("dead")],
  lost: [notable("lost")],
  cancelled: [notable("cancelled")],
};

function idle(state: JobState, condition: string): Source {
  return { table: "jobs", condition, state: `'${state}'`, own: null };
}

function notable(state: JobState): Source {
  return {
    table: "ended",
    condition: `state = '${state}' and state <> 'succeeded'`,
    state: "state",
    own: [],
  };
}

/** Sources that together cover the filter without overlap. What they return must still be checked against the rest of the filter. */
export function sourcesOf({ ids, states }: JobFilter): readonly Source[] {
  if (ids !== undefined || states === undefined) return [everything];
  return [...new Set(states)].flatMap((state) => sourcesByState[state]);
}

/** The same, from sources that know the state of their jobs. */
export function sourcesWithState({ states }: JobFilter): readonly Source[] {
  if (states !== undefined) return sourcesOf({ states });
  return [...sourcesOf({ states: ["waiting", "blocked", "active"] }), everythingEnded];
}

/** Whether the rows of a source can answer everything in the filter except the states. */
export function ownsAll({ own }: Source, filter: JobFilter): boolean {
  return (
    own === null ||
    Object.entries(filter).every(
      ([field, value]) => field === "states" || value === undefined || own.some((one) => one === field),
    )
  );
}

/** The rows of a source with their state, and with all columns of jobs if its own are not enough. */
export function rowsOf(schema: string, { table, condition, state }: Source, isOwn: boolean): string {
  const from = `${schema}.${table} where ns = $1 and ${condition}`;
  const stated = state === "state" ? "*" : `*, ${state} as state`;
  if (isOwn) return `(select ${stated} from ${from})`;
  return `(select j.*, s.state from (select ${stated} from ${from}) s join ${schema}.jobs j on j.seq = s.seq)`;
}

/** The filter as SQL conditions; its values are added to the list. */
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
