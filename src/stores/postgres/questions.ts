import type { JobState } from "../../job.ts";
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
import { textList } from "./connection/encode.ts";
import type { Value } from "./connection/link.ts";
import { readCounts } from "./jobs/counts.ts";
import { conditionOf, ownsAll, rowsOf, sourcesOf, sourcesWithState } from "./jobs/filter.ts";
import {
  dateOf,
  listOf,
  numberOf,
  stateOf,
  storedColumns,
  textOf,
  textOrNull,
  toStoredJob,
  tuplesOf,
} from "./rows.ts";
import type { Session } from "./session.ts";

export async function get(
  session: Session,
  { ids }: { readonly ids: readonly string[] },
): Promise<(StoredJob | null)[]> {
  if (ids.length === 0) return [];
  const { schema, functions, ns } = session;
  const answer = await session.run(
    `with asked as (select * from unnest($2::text::text[]) with ordinality as a (id, place))
     select json_agg(found.job order by a.place)::text as answer from asked a left join lateral (
       select ${storedColumns(schema)} from ${functions}.all_jobs j where j.seq = coalesce(
         (select seq from ${schema}.jobs where ns = $1 and id = a.id), (select job from ${schema}.aliases where ns = $1 and id = a.id))
       offset 0) found on true`,
    [ns, textList(ids)],
  );
  return listOf(answer).map((row) => (row === null ? null : toStoredJob(listOf(row))));
}

interface Page {
  readonly limit: number;
  readonly order: "newest" | "oldest";
  readonly verb: CursorScope["verb"];
  readonly cursor: string | null;
}

/** The first jobs that match, in enqueue order: a list of [seq, the columns asked for], one more than the limit if there are more. */
async function search(
  session: Session,
  columns: string,
  filter: JobFilter,
  { limit, order, verb, cursor }: Page,
): Promise<{ readonly found: readonly (readonly unknown[])[]; readonly cursor: string | null }> {
  const { schema, functions } = session;
  const values: Value[] = [session.ns, limit + 1];
  const { states, ...rest } = filter;
  const condition = conditionOf(rest, values);
  const inState = conditionOf(states === undefined ? {} : { states }, values);
  const oldest = order === "oldest";
  const scope = { verb, order, namespace: session.ns };
  let from = "";
  if (cursor !== null) {
    values.push(...readCursor(scope, cursor, 1));
    from = ` and seq ${oldest ? ">" : "<"} $${values.length}::bigint`;
  }
  const direction = oldest ? "asc" : "desc";
  const parts = sourcesOf(filter).map((source) => {
    // If its rows do not say enough, they are read one by one, no further than the page needs.
    const own = ownsAll(source, filter) && (source.state !== null || states === undefined);
    const asked = own || source.own === null ? condition : "";
    return `(select ${columns} from (
       select seq as place from ${schema}.${source.table} where ns = $1 and ${source.condition}${asked}${from}
       order by seq ${direction} ${own ? "limit $2" : "offset 0"}) found
     cross join lateral (select * from ${functions}.all_jobs where seq = place offset 0) j where true${condition}${inState} limit $2)`;
  });
  if (parts.length === 0) return { found: [], cursor: null };
  const answer = await session.run(
    `select coalesce(json_agg(json_build_array(seq, job) order by seq ${direction}), '[]')::text as answer from (
       select * from (${parts.join(" union all ")}) every order by seq ${direction} limit $2) page`,
    values,
  );
  const found = tuplesOf(answer);
  const page = found.slice(0, limit);
  const next = found.length > limit ? writeCursor(scope, [numberOf(page.at(-1)?.[0] ?? 0)]) : null;
  return { found: page, cursor: next };
}

export async function list(session: Session, { filter, ...page }: ListParams): Promise<ListResult> {
  const columns = storedColumns(session.schema);
  const { found, cursor } = await search(session, columns, filter, { ...page, verb: "list" });
  return { jobs: found.map(([, job]) => toStoredJob(listOf(job))), cursor };
}

/** The ids that a filter selects, in those states that could change. */
export async function findIds(
  session: Session,
  select: { readonly filter: JobFilter; readonly limit: number; readonly cursor: string | null },
  states: readonly JobState[],
): Promise<{ readonly ids: readonly string[]; readonly cursor: string | null }> {
  const asked = select.filter.states;
  const filter = { ...select.filter, states: states.filter((state) => asked?.includes(state) ?? true) };
  const { limit } = select;
  const page = { limit, order: "oldest", verb: "change", cursor: select.cursor } as const;
  const { found, cursor } = await search(session, "seq, to_json(id) as job", filter, page);
  return { ids: found.map(([, id]) => textOf(id)), cursor };
}

export async function count(session: Session, params: CountParams): Promise<CountRow[]> {
  const { filter, by } = params;
  if (isCounted(filter)) return groupCounts(await readCounts(session), params);
  const values: Value[] = [session.ns];
  const condition = conditionOf(filter, values);
  const groups = [...new Set(by)];
  const columns = groups.map((group) => `${group}, `).join("");
  const grouped = groups.length === 0 ? "" : `group by ${groups.join(", ")}`;
  const asked: JobFilter = {
    ...filter,
    ...(groups.includes("queue") ? { queues: [] } : {}),
    ...(groups.includes("name") ? { names: [] } : {}),
  };
  const parts = sourcesWithState(filter).map((source) => {
    const rows = rowsOf(session.schema, source, ownsAll(source, asked));
    return `select ${columns}count(*) as count from ${rows} found where true${condition} ${grouped}`;
  });
  if (parts.length === 0) return groups.length === 0 ? [{ count: 0 }] : [];
  const answer = await session.run(
    `select coalesce(json_agg(json_build_array(${columns}count)), '[]')::text as answer from (
       select ${columns}sum(count) as count from (${parts.join(" union all ")}) every ${grouped}) total`,
    values,
  );
  return tuplesOf(answer).map((row) => {
    const value = (group: (typeof groups)[number]): unknown => row[groups.indexOf(group)];
    return {
      ...(groups.includes("state") ? { state: stateOf(value("state")) } : {}),
      ...(groups.includes("queue") ? { queue: textOf(value("queue")) } : {}),
      ...(groups.includes("name") ? { name: textOf(value("name")) } : {}),
      count: numberOf(row[groups.length]),
    };
  });
}

export async function trail(session: Session, { id }: { readonly id: string }): Promise<TrailEntry[]> {
  const { schema } = session;
  const answer = await session.run(
    `select coalesce(json_agg(json_build_array(at, kind, attempt, token, claimer, text, error) order by entry), '[]')::text as answer
     from ${schema}.trail where job = coalesce(
       (select seq from ${schema}.jobs where ns = $1 and id = $2), (select job from ${schema}.aliases where ns = $1 and id = $2))`,
    [session.ns, id],
  );
  return tuplesOf(answer).map(([at, said, attempt, token, claimer, text, error]) => ({
    at: dateOf(at),
    kind: trailKinds.find((kind) => kind === said) ?? "log",
    attempt: numberOf(attempt),
    token: numberOf(token),
    claimer: textOrNull(claimer),
    text: textOrNull(text),
    error: textOrNull(error),
  }));
}
