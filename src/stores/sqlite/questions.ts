import type { SQLInputValue } from "node:sqlite";
import type { StoredJob } from "../../store/jobs.ts";
import {
  type CountParams,
  type CountRow,
  type JobFilter,
  type ListParams,
  type ListResult,
  type TrailEntry,
  trailKinds,
} from "../../store/questions.ts";
import { type CursorScope, readCursor, writeCursor } from "../cursor.ts";
import { groupCounts, isCounted } from "../kept-counts.ts";
import type { Row, Tuple } from "./connection/connection.ts";
import { readCounts } from "./jobs/counts.ts";
import { conditionOf, type Source, sourcesOf } from "./jobs/filter.ts";
import { resolveJob } from "./jobs/find.ts";
import { dateOf, numberOf, seqOf, stateOf, storedColumns, textOf, textOrNull, toStoredJob } from "./rows.ts";
import type { Session } from "./session.ts";

const byId = `select ${storedColumns} from escapement_all_jobs where ns = ? and id = ?`;
const byAlias = `select ${storedColumns} from escapement_all_jobs
  where seq = (select job from escapement_aliases where ns = ? and id = ?)`;

export function get(session: Session, { ids }: { readonly ids: readonly string[] }): (StoredJob | null)[] {
  return ids.map((id) => {
    const { connection, ns } = session;
    const row = connection.tuples(byId, ns, id)[0] ?? connection.tuples(byAlias, ns, id)[0];
    return row === undefined ? null : stored(session, row);
  });
}

function stored({ connection }: Session, row: Tuple): StoredJob {
  const job = toStoredJob(row, []);
  if (job.state !== "blocked") return job;
  const parents = connection.all(
    `select id from escapement_parents join escapement_jobs on seq = parent where child = ? order by position`,
    seqOf(row),
  );
  return { ...job, waitsFor: parents.map((parent) => textOf(parent["id"])) };
}

export function list(session: Session, { filter, limit, order, cursor }: ListParams): ListResult {
  const scope = { verb: "list", order, namespace: session.ns } as const;
  const found = search(session, storedColumns, filter, { limit: limit + 1, scope, cursor });
  const page = found.slice(0, limit);
  return { jobs: page.map((row) => stored(session, row)), cursor: nextCursor(scope, found, page) };
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
export function search(
  { connection, ns }: Session,
  columns: string,
  filter: JobFilter,
  page: { readonly limit: number; readonly scope: CursorScope; readonly cursor: string | null },
): Tuple[] {
  const condition = conditionOf(filter);
  const oldest = page.scope.order === "oldest";
  const from = page.cursor === null ? "" : ` and seq ${oldest ? ">" : "<"} ?`;
  const values: SQLInputValue[] = [ns];
  if (page.cursor !== null) values.push(...readCursor(page.scope, page.cursor, 1));
  values.push(...condition.values);
  const rows = sourcesOf(filter).flatMap((source) =>
    connection.tuplesOnce(
      `select ${columns} from ${jobsOf(source, from)}${condition.sql} order by place ${oldest ? "asc" : "desc"} limit +?`,
      ...values,
      page.limit,
    ),
  );
  const sign = oldest ? 1 : -1;
  rows.sort((a, b) => sign * (seqOf(a) - seqOf(b)));
  return rows.slice(0, page.limit);
}

export function count(session: Session, params: CountParams): CountRow[] {
  const { filter, by } = params;
  if (isCounted(filter)) return groupCounts(readCounts(session), params);
  const { connection, ns } = session;
  const condition = conditionOf(filter);
  const groups = [...new Set(by)].join(", ");
  const counts = new Map<string, CountRow>();
  if (by.length === 0) counts.set("[]", { count: 0 });
  for (const source of sourcesOf(filter)) {
    const rows = connection.once(
      `select ${groups === "" ? "" : `${groups}, `}count(*) as count from ${jobsOf(source)}${condition.sql}
       ${groups === "" ? "" : `group by ${groups}`}`,
      ns,
      ...condition.values,
    );
    for (const row of rows) {
      const key = JSON.stringify(by.map((field) => row[field]));
      counts.set(key, { ...groupOf(row, by), count: (counts.get(key)?.count ?? 0) + numberOf(row["count"]) });
    }
  }
  return [...counts.values()];
}

/** The jobs of a source, with room for another condition; its values are the namespace, then those of the added condition. */
function jobsOf({ table, condition, state }: Source, rest = ""): string {
  return `(select seq as place from ${table} where ${condition}${rest})
    cross join escapement_all_jobs on seq = place where ${state === null ? "true" : `state = '${state}'`}`;
}

function groupOf(row: Row, by: CountParams["by"]): Omit<CountRow, "count"> {
  return {
    ...(by.includes("state") ? { state: stateOf(row["state"]) } : {}),
    ...(by.includes("queue") ? { queue: textOf(row["queue"]) } : {}),
    ...(by.includes("name") ? { name: textOf(row["name"]) } : {}),
  };
}

export function trail(session: Session, { id }: { readonly id: string }): TrailEntry[] {
  const job = resolveJob(session, id);
  if (job === null) return [];
  const rows = session.connection.all(
    "select at, kind, attempt, token, claimer, text, error from escapement_trail where job = ? order by entry",
    job.seq,
  );
  return rows.map((row) => ({
    at: dateOf(row["at"]),
    kind: trailKinds.find((kind) => kind === row["kind"]) ?? "log",
    attempt: numberOf(row["attempt"]),
    token: numberOf(row["token"]),
    claimer: textOrNull(row["claimer"]),
    text: textOrNull(row["text"]),
    error: textOrNull(row["error"]),
  }));
}
