import type { JobState } from "../job.ts";
import type { EndedState } from "../state.ts";
import type { CountParams, CountRow, JobFilter } from "../store/questions.ts";

/**
 * What a store keeps count of, for each queue and name: all jobs, and those that have ended, by their state. So an enqueue and a finish
 * change one figure each, and a claim none.
 */
export type KeptKind = "all" | EndedState;

/** A figure that is kept, or one that is cheap to count: how many are active or blocked. */
export interface KeptCount {
  readonly queue: string;
  readonly name: string;
  readonly kind: KeptKind | "active" | "blocked";
  readonly jobs: number;
}

const counted: ReadonlySet<string> = new Set(["states", "names", "queues"] satisfies (keyof JobFilter)[]);

/** Whether a filter asks for nothing but what is counted all the time. */
export function isCounted(filter: JobFilter): boolean {
  return Object.entries(filter).every(([term, value]) => counted.has(term) || value === undefined);
}

/** Counts by state of each queue and name: whatever has not ended, is not active and not blocked waits. */
export function byState(kept: readonly KeptCount[]): Required<CountRow>[] {
  const groups = new Map<
    string,
    { queue: string; name: string; waiting: number; rows: Required<CountRow>[] }
  >();
  for (const { queue, name, kind, jobs } of kept) {
    const key = JSON.stringify([queue, name]);
    const group = groups.get(key) ?? { queue, name, waiting: 0, rows: [] };
    groups.set(key, group);
    group.waiting += kind === "all" ? jobs : -jobs;
    if (kind !== "all") group.rows.push({ queue, name, state: kind, count: jobs });
  }
  return [...groups.values()]
    .flatMap(({ queue, name, waiting, rows }) => [
      ...rows,
      { queue, name, state: "waiting" as JobState, count: waiting },
    ])
    .filter(({ count }) => count > 0);
}

/** Groups counts as they were asked for; only for filters that {@link isCounted} says yes to. */
export function groupCounts(rows: readonly Required<CountRow>[], { filter, by }: CountParams): CountRow[] {
  const groups = new Map<string, { group: Omit<CountRow, "count">; count: number }>();
  if (by.length === 0) groups.set("[]", { group: {}, count: 0 });
  for (const row of rows) {
    if (!isAskedFor(row, filter)) continue;
    const key = JSON.stringify(by.map((field) => row[field]));
    const entry = groups.get(key) ?? {
      group: Object.fromEntries(by.map((field) => [field, row[field]])),
      count: 0,
    };
    entry.count += row.count;
    groups.set(key, entry);
  }
  return [...groups.values()].map(({ group, count }) => ({ ...group, count }));
}

function isAskedFor(row: Required<CountRow>, { states, queues, names }: JobFilter): boolean {
  return (
    (states?.includes(row.state) ?? true) &&
    (queues?.includes(row.queue) ?? true) &&
    (names?.includes(row.name) ?? true)
  );
}

/** How many of these there are of each queue and name. */
export function perGroup<T extends { readonly queue: string; readonly name: string }>(
  jobs: readonly T[],
): { readonly queue: string; readonly name: string; readonly jobs: number }[] {
  const groups: { queue: string; name: string; jobs: number }[] = [];
  let last: (typeof groups)[number] | undefined;
  for (const { queue, name } of jobs) {
    // Jobs of one call are mostly alike.
    if (last === undefined || last.queue !== queue || last.name !== name) {
      last = groups.find((group) => group.queue === queue && group.name === name);
      if (last === undefined) {
        last = { queue, name, jobs: 0 };
        groups.push(last);
      }
    }
    last.jobs += 1;
  }
  return groups;
}
