import type { SQLInputValue } from "node:sqlite";
import type {
  CountParams,
  CountRow,
  JobFilter,
  ListParams,
  ListResult,
  StoredJob,
  TrailEntry,
  TrailKind,
} from "../../store.ts";
import type { Row } from "./connection.ts";
import { conditionOf, sourcesOf } from "./filter.ts";
import { resolveJob } from "./jobs.ts";
import { dateOf, numberOf, stateOf, storedColumns, textOf, textOrNull, toStoredJob } from "./rows.ts";
import type { Session } from "./session.ts";

const byId = `select ${storedColumns} from escapement_jobs where ns = ?1 and id = ?2
  union all select ${storedColumns} from escapement_history where ns = ?1 and id = ?2`;
const byAlias = `with alias as (select job from escapement_aliases where ns = ?1 and id = ?2)
  select ${storedColumns} from alias join escapement_jobs on seq = job
  union all select ${storedColumns} from alias join escapement_history on seq = job`;

export function get(session: Session, ids: readonly string[]): (StoredJob | null)[] {
  return ids.map((id) => {
    const { connection, ns } = session;
    const row = connection.get(byId, ns, id) ?? connection.get(byAlias, ns, id);
    return row === undefined ? null : stored(session, row);
  });
}

function stored({ connection }: Session, row: Row): StoredJob {
  if (row["state"] !== "blocked") return toStoredJob(row, []);
  const parents = connection.all(
    `select id from escapement_parents join escapement_jobs on seq = parent where child = ? order by position`,
    numberOf(row["seq"]),
  );
  return toStoredJob(
    row,
    parents.map((parent) => textOf(parent["id"])),
  );
}

export function list(session: Session, { filter, limit, order, cursor }: ListParams): ListResult {
  const found = search(session, storedColumns, filter, { limit: limit + 1, order, cursor });
  const page = found.slice(0, limit);
  return { jobs: page.map((row) => stored(session, row)), cursor: nextCursor(found, page) };
}

/** Where to go on behind a page, null when there is nothing more. */
export function nextCursor(found: readonly Row[], page: readonly Row[]): string | null {
  return found.length > page.length ? String(numberOf(page.at(-1)?.["seq"] ?? 0)) : null;
}

/** The first jobs that match, in the order of enqueueing. */
export function search(
  { connection, ns }: Session,
  columns: string,
  filter: JobFilter,
  page: { readonly limit: number; readonly order: "newest" | "oldest"; readonly cursor: string | null },
): Row[] {
  const condition = conditionOf(filter);
  const oldest = page.order === "oldest";
  const from = page.cursor === null ? "" : ` and seq ${oldest ? ">" : "<"} ?`;
  const values: SQLInputValue[] = [ns, ...condition.values];
  if (page.cursor !== null) values.push(Number(page.cursor));
  const rows = sourcesOf(filter).flatMap((source) =>
    connection.once(
      `select ${columns} from ${source.table} ${source.hint} where ns = ? and ${source.condition}${condition.sql}${from}
       order by seq ${oldest ? "asc" : "desc"} limit ?`,
      ...values,
      page.limit,
    ),
  );
  const sign = oldest ? 1 : -1;
  rows.sort((a, b) => sign * (numberOf(a["seq"]) - numberOf(b["seq"])));
  return rows.slice(0, page.limit);
}

export function count({ connection, ns }: Session, { filter, by }: CountParams): CountRow[] {
  const condition = conditionOf(filter);
  const groups = [...new Set(by)].join(", ");
  const tables = ["escapement_jobs", "escapement_history"];
  const counts = new Map<string, CountRow>();
  if (by.length === 0) counts.set("[]", { count: 0 });
  for (const table of tables) {
    const rows = connection.once(
      `select ${groups === "" ? "" : `${groups}, `}count(*) as count from ${table} where ns = ?${condition.sql}
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

function groupOf(row: Row, by: CountParams["by"]): Omit<CountRow, "count"> {
  return {
    ...(by.includes("state") ? { state: stateOf(row["state"]) } : {}),
    ...(by.includes("queue") ? { queue: textOf(row["queue"]) } : {}),
    ...(by.includes("name") ? { name: textOf(row["name"]) } : {}),
  };
}

const trailKinds = [
  "failed",
  "crashed",
  "snoozed",
  "rolled-back",
  "cancel-requested",
  "updated",
  "redriven",
  "log",
] as const satisfies TrailKind[];

export function trail(session: Session, id: string): TrailEntry[] {
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
