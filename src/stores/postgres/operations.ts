import type { AuditPage, AuditParams, NewAuditEntry, NoteParams } from "../../store/audit.ts";
import {
  errorHeadLength,
  type JobSketch,
  type ScanFilter,
  type ScanParams,
  type ScanResult,
} from "../../store/questions.ts";
import type { PruneParams } from "../../store/reaping.ts";
import { readCursor, writeCursor } from "../cursor.ts";
import { needlesOf } from "../needle.ts";
import { endOfScan, endStatesOf, readPlace, scopeOf, writePlace } from "../scan-place.ts";
import { clean, textList, toJson } from "./connection/encode.ts";
import type { Value } from "./connection/link.ts";
import { conditionOf } from "./jobs/filter.ts";
import { byEnd, byEnqueueing, spanOf } from "./jobs/scan-sources.ts";
import {
  dateOf,
  dateOrNull,
  deliveryOf,
  listOf,
  numberOf,
  stateOf,
  textOf,
  textOrNull,
  textsOf,
  tuplesOf,
} from "./rows.ts";
import type { Session } from "./session.ts";

const sketch = `json_build_array(id, name, queue, delivery, priority, tags, state, attempt, attempts, run_at, enqueued_at, claimed_at,
  finished_at, claimer, reason, left(error, ${errorHeadLength}), redrives)`;

/** First chooses which jobs to look at, reading as few columns as possible; then checks the rest of the question on those. */
export async function scan(session: Session, params: ScanParams): Promise<ScanResult> {
  const { limit, lookAt } = params;
  const { schema, functions, ns } = session;
  const scope = scopeOf(params, ns);
  const from = readPlace(scope, params.cursor);
  const values: Value[] = [ns, lookAt, limit];
  const isByEnd = params.by === "ended";
  const filter = isByEnd ? { ...params.filter, states: endStatesOf(params.filter) } : params.filter;
  const candidates = (isByEnd ? byEnd : byEnqueueing)(schema, { ...params, filter }, from, values);
  if (candidates.length === 0) return { jobs: [], looked: 0, cursor: null };
  const order = inOrder(params.order);
  const condition = conditionOf(baseOf(filter), values) + scanCondition(filter, values);
  const answer = await session.run(
    `with looked as materialized (
       select at, seq, row_number() over (order by ${order}) as place from (
         select at, seq from (${candidates.join(isByEnd ? " union " : " union all ")}) every order by ${order} limit $2 + 1) candidates),
     matched as (
       select l.place, l.at, l.seq, found.job from looked l cross join lateral (
         select ${sketch} as job from ${functions}.all_jobs where seq = l.seq${condition} offset 0) found
       where l.place <= $2 order by place limit $3)
     select json_build_array(
       (select count(*) from looked), (select json_build_array(at, seq) from looked where place = $2),
       (select coalesce(json_agg(json_build_array(place, at, seq, job) order by place), '[]') from matched))::text as answer`,
    values,
  );
  const [total, lastLooked, rows] = listOf(answer);
  const found = tuplesOf(rows);
  const end = endOfScan({
    total: numberOf(total),
    lookAt,
    limit,
    found: found.map(([place]) => numberOf(place)),
  });
  const [at, seq] = found.length === limit ? (found.at(-1)?.slice(1) ?? []) : listOf(lastLooked ?? []);
  return {
    jobs: found.map(([, , , job]) => toSketch(listOf(job))),
    looked: end.looked,
    cursor: end.hasMore ? writePlace(scope, { at: numberOf(at), seq: numberOf(seq) }) : null,
  };
}

function inOrder(order: ScanParams["order"]): string {
  return order === "oldest" ? "at, seq" : "at desc, seq desc";
}

function baseOf({ endedAfter: _a, endedBefore: _b, error: _e, text: _t, ...base }: ScanFilter): ScanFilter {
  return base;
}

function scanCondition(filter: ScanFilter, values: Value[]): string {
  const terms: string[] = [];
  const place = (value: Value, type: string): string => {
    values.push(value);
    return `$${values.length}::${type}`;
  };
  const has = (columns: readonly string[], text: string | undefined): void => {
    if (text === undefined) return;
    const tests = needlesOf(text).flatMap((needle) => {
      // A string that the server cannot store matches nothing.
      const wanted = place(clean(needle), "text");
      return columns.map((column) => `strpos(lower((${column}) collate "C"), ${wanted}) > 0`);
    });
    terms.push(`(${tests.map((one) => `coalesce(${one}, false)`).join(" or ")})`);
  };
  has(["reason", "error"], filter.error);
  has(["input", "array_to_string(tags, E'\\n')", "reason", "error"], filter.text);
  return spanOf(filter, values) + terms.map((term) => ` and ${term}`).join("");
}

function toSketch(row: readonly unknown[]): JobSketch {
  return {
    id: textOf(row[0]),
    name: textOf(row[1]),
    queue: textOf(row[2]),
    delivery: deliveryOf(row[3]),
    priority: numberOf(row[4]),
    tags: textsOf(listOf(row[5]).filter((tag) => typeof tag === "string")),
    state: stateOf(row[6]),
    attempt: numberOf(row[7]),
    attempts: numberOf(row[8]),
    runAt: dateOf(row[9]),
    enqueuedAt: dateOf(row[10]),
    claimedAt: dateOrNull(row[11]),
    finishedAt: dateOrNull(row[12]),
    claimer: textOrNull(row[13]),
    reason: textOrNull(row[14]),
    redrives: numberOf(row[16]),
    errorHead: textOrNull(row[15])?.slice(0, errorHeadLength) ?? null,
  };
}

export async function note(session: Session, { ids, text }: NoteParams): Promise<void> {
  await session.run(`select ${session.functions}.note_jobs($1, $2, $3::text::text[], $4)::text as answer`, [
    session.ns,
    session.now,
    textList(ids),
    clean(text),
  ]);
}

export async function record(
  session: Session,
  { entries }: { readonly entries: readonly NewAuditEntry[] },
): Promise<void> {
  const { schema, functions } = session;
  await session.run(
    `with written as (
       insert into ${schema}.audit (ns, at, id, actor, action, target, reason, outcome)
       select $1, ${functions}.now_ms($2::bigint), id, actor, action, target, reason, outcome from (
         select distinct on (id) * from rows from (jsonb_to_recordset($3::text::jsonb)
           as (id text, actor text, action text, target text, reason text, outcome text)) with ordinality order by id, ordinality) given
       order by ordinality
       on conflict (ns, id) do update set outcome = excluded.outcome returning 1)
     select count(*)::text as answer from written`,
    [session.ns, session.now, toJson(entries)],
  );
}

export async function audit(session: Session, { filter, limit, cursor }: AuditParams): Promise<AuditPage> {
  const scope = { verb: "audit", order: "newest", namespace: session.ns } as const;
  const values: Value[] = [session.ns, limit + 1];
  const terms: string[] = [];
  const where = (term: string, type: string, value: Value | undefined): void => {
    if (value === undefined) return;
    values.push(value);
    terms.push(` and ${term.replace("?", `$${values.length}::${type}`)}`);
  };
  const oneOf = (column: string, allowed: readonly string[] | undefined): void =>
    where(`${column} = any (?)`, "text::text[]", allowed && textList(allowed));
  oneOf("actor", filter.actors);
  oneOf("action", filter.actions);
  oneOf("target", filter.targets);
  where("at >= ?", "bigint", filter.after?.getTime());
  where("at < ?", "bigint", filter.before?.getTime());
  where("entry < ?", "bigint", cursor === null ? undefined : readCursor(scope, cursor, 1)[0]);
  const answer = await session.run(
    `select coalesce(json_agg(json_build_array(entry, at, id, actor, action, target, reason, outcome) order by entry desc), '[]')::text as answer
     from (select * from ${session.schema}.audit where ns = $1${terms.join("")} order by entry desc limit $2) page`,
    values,
  );
  const rows = tuplesOf(answer);
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return {
    entries: page.map(([, at, id, actor, action, target, reason, outcome]) => ({
      at: dateOf(at),
      id: textOf(id),
      actor: textOf(actor),
      action: textOf(action),
      target: textOf(target),
      reason: textOrNull(reason),
      outcome: textOrNull(outcome),
    })),
    cursor: rows.length > limit && last !== undefined ? writeCursor(scope, [numberOf(last[0])]) : null,
  };
}

/** Whether there are more. */
export async function pruneAudit(session: Session, { auditMs, limit }: PruneParams): Promise<boolean> {
  if (auditMs === undefined) return false;
  const { schema, functions } = session;
  const old = `select entry from ${schema}.audit where ns = $1 and at <= ${functions}.now_ms($2::bigint) - $3::bigint order by at, entry`;
  const answer = await session.run(
    `with old as materialized (${old} limit $4 + 1),
     gone as (delete from ${schema}.audit where entry in (select entry from old order by entry limit $4) returning 1)
     select json_build_array((select count(*) from old), (select count(*) from gone))::text as answer`,
    [session.ns, session.now, Math.trunc(auditMs), limit],
  );
  return numberOf(listOf(answer)[0]) > limit;
}
