import type { StoredJob } from "../../store/jobs.ts";
import {
  type CountParams,
  type CountRow,
  type JobFilter,
  type ListParams,
  type ListResult,
  maxTrailLength,
  type TrailEntry,
  trailKinds,
} from "../../store/questions.ts";
import { type CursorScope, readCursor, writeCursor } from "../cursor.ts";
import { groupCounts, isCounted } from "../kept-counts.ts";
import type { Tuple } from "./connection/link.ts";
import { fixed, type Sql, sql } from "./connection/sql.ts";
import { readCounts } from "./jobs/counts.ts";
import { conditionOf, indexFor } from "./jobs/filter.ts";
import { dateOf, numberOf, seqOf, stateOf, storedColumns, textOf, textOrNull, toStoredJob } from "./rows.ts";
import type { Session } from "./session.ts";

/** Above this many ids, a query is split. */
const maxIds = 5_000;

export async function get(
  session: Session,
  { ids }: { readonly ids: readonly string[] },
): Promise<(StoredJob | null)[]> {
  const { link, ns } = session;
  const found = new Map<string, StoredJob>();
  for (let start = 0; start < ids.length; start += maxIds) {
    const { rows } = await link.query(
      sql`select ${storedColumns}, a.id as asked from escapement_jobs as a force index (escapement_jobs_id)
        straight_join escapement_jobs as j force index (primary) on j.seq = if(a.state = 'alias', a.stands_for, a.seq)
        left join escapement_claimers as c on c.claimer = j.claimer
        where a.ns = ${ns} and a.id in (${ids.slice(start, start + maxIds)})`,
    );
    const jobs = await stored(session, rows);
    for (const [index, row] of rows.entries()) {
      const job = jobs[index];
      if (job !== undefined) found.set(textOf(row.at(-1)), job);
    }
  }
  return ids.map((id) => found.get(id) ?? null);
}

/** From {@link storedColumns}, with the parents that blocked ones wait for. */
async function stored({ link }: Session, rows: readonly Tuple[]): Promise<StoredJob[]> {
  const blocked = rows.filter((row) => textOf(row[19]) === "blocked").map(seqOf);
  const waitsFor = new Map<number, string[]>();
  if (blocked.length > 0) {
    const { rows: parents } = await link.query(
      sql`select child, id from escapement_parents join escapement_jobs on seq = parent
        where child in (${blocked}) order by child, position`,
    );
    for (const row of parents) {
      const child = numberOf(row[0]);
      waitsFor.set(child, [...(waitsFor.get(child) ?? []), textOf(row[1])]);
    }
  }
  return rows.map((row) => toStoredJob(row, waitsFor.get(seqOf(row)) ?? []));
}

export async function list(session: Session, params: ListParams): Promise<ListResult> {
  const { filter, limit, order, cursor } = params;
  const scope = { verb: "list", order, namespace: session.ns } as const;
  const found = await search(session, storedColumns, filter, { limit: limit + 1, scope, cursor });
  const page = found.slice(0, limit);
  return { jobs: await stored(session, page), cursor: nextCursor(scope, found, page) };
}

/** Where the next page starts, null when there is no more. */
export function nextCursor(
  scope: CursorScope,
  found: readonly Tuple[],
  page: readonly Tuple[],
): string | null {
  return found.length > page.length ? writeCursor(scope, [Number(page.at(-1)?.[0] ?? 0)]) : null;
}

/** The first jobs that match, in enqueue order; `seq` must be the first column. */
export async function search(
  session: Session,
  columns: Sql,
  filter: JobFilter,
  page: { readonly limit: number; readonly scope: CursorScope; readonly cursor: string | null },
): Promise<readonly Tuple[]> {
  const [after] = page.cursor === null ? [] : readCursor(page.scope, page.cursor, 1);
  await session.lines.refresh(session.link);
  const { hint, range } = indexFor(session, filter);
  const oldest = page.scope.order === "oldest";
  const from = after === undefined ? fixed("true") : sql`j.seq ${fixed(oldest ? ">" : "<")} ${after}`;
  const { rows } = await session.link.query(
    sql`select ${columns} from escapement_jobs as j ${hint} left join escapement_claimers as c on c.claimer = j.claimer
      where ${range} and ${conditionOf(session, filter)} and ${from}
      order by j.seq ${fixed(oldest ? "asc" : "desc")} limit ${page.limit}`,
  );
  return rows;
}

export async function count(session: Session, params: CountParams): Promise<CountRow[]> {
  const { filter, by } = params;
  if (isCounted(filter)) return groupCounts(await readCounts(session), params);
  const fields = [...new Set(by)];
  const columns = fixed(fields.map((field) => `, j.${field}`).join(""));
  const grouped = fixed(
    fields.length === 0 ? "" : `group by ${fields.map((field) => `j.${field}`).join(", ")}`,
  );
  const { rows } = await session.link.query(
    sql`select count(*)${columns} from escapement_jobs as j where ${conditionOf(session, filter)} ${grouped}`,
  );
  return rows.map((row) => {
    const value = (field: (typeof fields)[number]): string => textOf(row[fields.indexOf(field) + 1]);
    return {
      ...(fields.includes("state") ? { state: stateOf(value("state")) } : {}),
      ...(fields.includes("queue") ? { queue: value("queue") } : {}),
      ...(fields.includes("name") ? { name: value("name") } : {}),
      count: numberOf(row[0]),
    };
  });
}

export async function trail({ link, ns }: Session, { id }: { readonly id: string }): Promise<TrailEntry[]> {
  const { rows } = await link.query(
    sql`select t.at, t.kind, t.attempt, t.token, c.name, t.text, t.error
      from escapement_jobs as a
      straight_join escapement_trail as t on t.job = if(a.state = 'alias', a.stands_for, a.seq)
      left join escapement_claimers as c on c.claimer = t.claimer
      where a.ns = ${ns} and a.id = ${id} order by t.entry desc limit ${maxTrailLength}`,
  );
  return rows.toReversed().map((row) => ({
    at: dateOf(row[0]),
    kind: trailKinds.find((kind) => kind === textOf(row[1])) ?? "log",
    attempt: numberOf(row[2]),
    token: numberOf(row[3]),
    claimer: textOrNull(row[4]),
    text: textOrNull(row[5]),
    error: textOrNull(row[6]),
  }));
}
