import type { JobState } from "../../job.ts";
import type { SelectParams, SelectResult, StoredJob } from "../../store/jobs.ts";
import type {
  CountParams,
  CountRow,
  JobFilter,
  ListParams,
  ListResult,
  TrailEntry,
} from "../../store/questions.ts";
import { readCursor, writeCursor } from "../cursor.ts";
import type { Data } from "./data/data.ts";
import { type Row, toStored } from "./rows.ts";
import type { Session } from "./session.ts";

/** An absorbed or debounced id finds the job that it refers to. */
export function get({ data }: Session, { ids }: { readonly ids: readonly string[] }): (StoredJob | null)[] {
  return ids.map((id) => {
    const row = data.resolve(id);
    return row === undefined ? null : toStored(row);
  });
}

export function trail({ data }: Session, { id }: { readonly id: string }): TrailEntry[] {
  return (data.resolve(id)?.trail ?? []).map((entry) => ({ ...entry, at: new Date(entry.at) }));
}

export function list({ data }: Session, { filter, limit, order, cursor }: ListParams): ListResult {
  const scope = { verb: "list", order, namespace: data.namespace } as const;
  const from = cursor === null ? null : readCursor(scope, cursor, 1);
  const { rows, next } = page(search(data, filter, order, from), limit);
  return { jobs: rows.map(toStored), cursor: next && writeCursor(scope, next) };
}

export function count({ data }: Session, { filter, by }: CountParams): CountRow[] {
  const groups = new Map<string, { group: Omit<CountRow, "count">; count: number }>();
  if (by.length === 0) groups.set("[]", { group: {}, count: 0 });
  for (const row of search(data, filter, "oldest", null)) {
    const key = JSON.stringify(by.map((field) => row[field]));
    const entry = groups.get(key) ?? {
      group: Object.fromEntries(by.map((field) => [field, row[field]])),
      count: 0,
    };
    entry.count += 1;
    groups.set(key, entry);
  }
  return [...groups.values()].map(({ group, count }) => ({ ...group, count }));
}

/** Chooses the jobs of a cancel or a redrive, then processes them one by one. */
export function forEachSelected<O extends string>(
  data: Data,
  { select }: SelectParams,
  states: readonly JobState[],
  act: (row: Row) => O,
): SelectResult<O | "unknown"> {
  if ("ids" in select) {
    const results = select.ids.map((id) => {
      const row = data.resolve(id);
      return { id, outcome: row === undefined ? "unknown" : act(row) } as const;
    });
    return { results, cursor: null };
  }
  const scope = { verb: "change", order: "oldest", namespace: data.namespace } as const;
  const from = select.cursor === null ? null : readCursor(scope, select.cursor, 1);
  const { rows, next } = page(changeable(data, select.filter, from, states), select.limit);
  const results = rows.map((row) => ({ id: row.id, outcome: act(row) }));
  return { results, cursor: next && writeCursor(scope, next) };
}

function* changeable(
  data: Data,
  filter: JobFilter,
  after: readonly number[] | null,
  states: readonly JobState[],
): Generator<Row> {
  for (const row of search(data, filter, "oldest", after)) {
    if (states.includes(row.state)) yield row;
  }
}

function page(rows: Iterable<Row>, limit: number): { rows: Row[]; next: [number] | null } {
  const found: Row[] = [];
  for (const row of rows) {
    if (found.length === limit) return { rows: found, next: [found.at(-1)?.order ?? 0] };
    found.push(row);
  }
  return { rows: found, next: null };
}

function* search(
  data: Data,
  filter: JobFilter,
  order: "newest" | "oldest",
  after: readonly number[] | null,
): Generator<Row> {
  const from = after === null ? null : { order: after[0] ?? 0 };
  const { inOrder } = data;
  for (const row of order === "oldest" ? inOrder.upward(from) : inOrder.downward(from)) {
    if (matches(row, filter)) yield row;
  }
}

export function matches(row: Row, filter: JobFilter): boolean {
  return (
    (filter.ids?.includes(row.id) ?? true) &&
    (filter.states?.includes(row.state) ?? true) &&
    (filter.names?.includes(row.name) ?? true) &&
    (filter.queues?.includes(row.queue) ?? true) &&
    (filter.deliveries?.includes(row.delivery) ?? true) &&
    (filter.tags?.every((tag) => row.tags.includes(tag)) ?? true) &&
    (filter.schedule === undefined || row.schedule === filter.schedule) &&
    isWithin(row.enqueuedAt, filter.enqueuedAfter, filter.enqueuedBefore) &&
    isWithin(row.runAt, filter.runAfter, filter.runBefore)
  );
}

export function isWithin(instant: number, after: Date | undefined, before: Date | undefined): boolean {
  if (after !== undefined && instant < after.getTime()) return false;
  return before === undefined || instant < before.getTime();
}
