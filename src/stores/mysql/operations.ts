import { isTerminal } from "../../state.ts";
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
import {
  comparePlaces,
  endOfScan,
  endStatesOf,
  readPlace,
  type ScanPlace,
  scopeOf,
  writePlace,
} from "../scan-place.ts";
import type { Tuple } from "./connection/link.ts";
import { fixed, join, now, type Sql, sql } from "./connection/sql.ts";
import { lastEnded } from "./jobs/counts.ts";
import { conditionOf, indexFor } from "./jobs/filter.ts";
import { resolveJobs } from "./jobs/find.ts";
import { tell } from "./jobs/trail.ts";
import { runsOf, toRun } from "./limits/shelves.ts";
import {
  dateOf,
  dateOrNull,
  deliveryOf,
  numberOf,
  numberOrNull,
  seqOf,
  stateOf,
  textOf,
  textOrNull,
} from "./rows.ts";
import type { Session } from "./session.ts";

const sketchColumns = fixed(
  "j.seq, j.id, j.name, j.queue, j.delivery, j.priority, j.tags, j.state, j.attempt, j.attempts, j.run_at, j.enqueued_at, j.claimed_at, " +
    `if(j.state in ('succeeded', 'dead', 'lost', 'cancelled'), j.at, null), c.name as claimer_name, j.reason, left(j.error, ${errorHeadLength}), j.redrives`,
);

/** First chooses which jobs to look at, reading as few columns as possible; then checks the rest of the question on those. */
export async function scan(session: Session, params: ScanParams): Promise<ScanResult> {
  const { filter, order, limit, lookAt } = params;
  const scope = scopeOf(params, session.ns);
  const from = readPlace(scope, params.cursor);
  const candidates = await (params.by === "ended" ? byEnd : byEnqueueing)(session, params, from);
  const looked = candidates.slice(0, lookAt);
  const places = new Map(looked.map(({ seq }, index) => [seq, index + 1]));
  const placeOf = (row: Tuple): number => places.get(seqOf(row)) ?? 0;
  // A page in the order of ends is put in order here: the server would sort by a list of numbers.
  const [asked, page] =
    params.by === "ended" ? [{ ...filter, states: endStatesOf(filter) }, lookAt] : [filter, limit];
  const rows = looked.length === 0 ? [] : [...(await matching(session, asked, looked, order, page))];
  rows.sort((a, b) => placeOf(a) - placeOf(b)).splice(limit);
  const end = endOfScan({ total: candidates.length, lookAt, limit, found: rows.map(placeOf) });
  const last = looked[end.looked - 1];
  return {
    jobs: rows.map(toSketch),
    looked: end.looked,
    cursor: end.hasMore && last !== undefined ? writePlace(scope, last) : null,
  };
}

/** The numbers of what to look at, and one more where there is more. */
async function byEnqueueing(
  session: Session,
  params: ScanParams,
  from: ScanPlace | null,
): Promise<ScanPlace[]> {
  const { filter, order, lookAt } = params;
  const [start] = await Promise.all([startOf(session, params), session.lines.refresh(session.link)]);
  const oldest = order === "oldest";
  const behind = from === null ? start : sql`j.seq ${fixed(oldest ? ">" : "<")} ${from.seq}`;
  const { hint, range, isOfStates } = indexFor(session, filter);
  const { ids, states } = filter;
  // The index of lines alone shows which jobs are in a state; anything more would have to be read from the jobs.
  const candidate = isOfStates
    ? fixed("true")
    : conditionOf(session, {
        ...(ids === undefined ? {} : { ids }),
        ...(states === undefined ? {} : { states }),
      });
  const { rows } = await session.link.query(
    sql`select j.seq from escapement_jobs as j ${hint} where ${range} and ${candidate} and ${behind}
      order by j.seq ${fixed(oldest ? "asc" : "desc")} limit ${lookAt + 1}`,
  );
  return rows.map((row) => ({ at: 0, seq: seqOf(row) }));
}

/** Index: escapement_jobs_line, of which each kind of retention in a state is a run. */
async function byEnd(
  { link, lines }: Session,
  { filter, order, lookAt }: ScanParams,
  from: ScanPlace | null,
): Promise<ScanPlace[]> {
  const states = endStatesOf(filter).map((state) => lines.common(state as "dead"));
  if (states.length === 0) return [];
  const { rows: runs } = await link.query(runsOf(states));
  if (runs.length === 0) return [];
  const oldest = order === "oldest";
  const [direction, behind] = [fixed(oldest ? "asc" : "desc"), fixed(oldest ? ">" : "<")];
  const { endedAfter, endedBefore } = filter;
  const terms: Sql[] = [];
  if (endedAfter !== undefined) terms.push(sql`at >= ${endedAfter.getTime()}`);
  if (endedBefore !== undefined) terms.push(sql`at < ${endedBefore.getTime()}`);
  if (from !== null)
    terms.push(sql`at ${behind}= ${from.at} and (at ${behind} ${from.at} or seq ${behind} ${from.seq})`);
  const parts = runs.map(toRun).map(
    ({ line, urgency }) => sql`(select at, seq from escapement_jobs force index (escapement_jobs_line)
      where ${join([sql`line = ${line} and urgency = ${urgency}`, ...terms], " and ")}
      order by at ${direction}, seq ${direction} limit ${lookAt + 1})`,
  );
  const { rows } = await link.query(join(parts, " union all "));
  const sign = oldest ? 1 : -1;
  return rows
    .map(([at, seq]) => ({ at: numberOf(at), seq: numberOf(seq) }))
    .sort((a, b) => sign * comparePlaces(a, b))
    .slice(0, lookAt + 1);
}

/** For ended jobs only, newest first: start below all newer jobs, of which there may be a million. */
async function startOf({ link, ns }: Session, { filter, order, cursor }: ScanParams): Promise<Sql> {
  const { states, ids } = filter;
  const isHelped =
    order === "newest" && cursor === null && ids === undefined && states?.includes("succeeded") === true;
  if (!isHelped || !states.every(isTerminal)) return fixed("true");
  const { rows } = await link.query(lastEnded(ns, states));
  return sql`j.seq <= ${numberOrNull(rows[0]?.[0]) ?? 0}`;
}

async function matching(
  session: Session,
  filter: ScanFilter,
  looked: readonly ScanPlace[],
  order: ScanParams["order"],
  limit: number,
): Promise<readonly Tuple[]> {
  const { rows } = await session.link.query(
    sql`select ${sketchColumns} from escapement_jobs as j force index (primary)
      left join escapement_claimers as c on c.claimer = j.claimer
      where j.seq in (${looked.map(({ seq }) => seq)}) and ${conditionOf(session, filter)} and ${scanCondition(filter)}
      order by j.seq ${fixed(order === "oldest" ? "asc" : "desc")} limit ${limit}`,
  );
  return rows;
}

const isEnded = fixed("j.state in ('succeeded', 'dead', 'lost', 'cancelled')");

function scanCondition(filter: ScanFilter): Sql {
  const terms: Sql[] = [fixed("true")];
  const has = (columns: readonly string[], text: string | undefined): void => {
    if (text === undefined) return;
    const tests = needlesOf(text).flatMap((needle) =>
      columns.map((column) => sql`coalesce(locate(${needle}, lower(${fixed(column)})) > 0, 0)`),
    );
    terms.push(sql`(${join(tests, " or ")})`);
  };
  const { endedAfter, endedBefore } = filter;
  if (endedAfter !== undefined) terms.push(sql`${isEnded} and j.at >= ${endedAfter.getTime()}`);
  if (endedBefore !== undefined) terms.push(sql`${isEnded} and j.at < ${endedBefore.getTime()}`);
  has(["j.reason", "j.error"], filter.error);
  has(["j.input", "j.tags", "j.reason", "j.error"], filter.text);
  return join(terms, " and ");
}

function toSketch(row: Tuple): JobSketch {
  return {
    id: textOf(row[1]),
    name: textOf(row[2]),
    queue: textOf(row[3]),
    delivery: deliveryOf(row[4]),
    priority: numberOf(row[5]),
    tags: tagsOf(row[6]),
    state: stateOf(row[7]),
    attempt: numberOf(row[8]),
    attempts: numberOf(row[9]),
    runAt: dateOf(row[10]),
    enqueuedAt: dateOf(row[11]),
    claimedAt: numberOf(row[12]) === 0 ? null : dateOf(row[12]),
    finishedAt: dateOrNull(row[13]),
    claimer: textOrNull(row[14]),
    reason: textOrNull(row[15]),
    redrives: numberOf(row[17]),
    errorHead: textOrNull(row[16])?.slice(0, errorHeadLength) ?? null,
  };
}

/** Null if there are none; what is not JSON counts as none. */
function tagsOf(value: unknown): string[] {
  try {
    const list: unknown = value === null ? [] : JSON.parse(textOf(value));
    return Array.isArray(list) ? list.map(String) : [];
  } catch {
    return [];
  }
}

export async function note(session: Session, { ids, text }: NoteParams): Promise<void> {
  const jobs = await resolveJobs(session, [...new Set(ids)]);
  for (const id of ids) {
    const job = jobs.get(id);
    if (job !== undefined && job !== null) tell(session, { ...job, claimer: 0 }, "log", text);
  }
}

export async function record(
  { link, ns }: Session,
  { entries }: { readonly entries: readonly NewAuditEntry[] },
): Promise<void> {
  if (entries.length === 0) return;
  const values = entries.map(
    ({ id, actor, action, target, reason, outcome }) =>
      sql`(${ns}, ${now}, ${id}, ${actor}, ${action}, ${target}, ${reason}, ${outcome})`,
  );
  link.write(
    sql`insert into escapement_audit (ns, at, id, actor, action, target, reason, outcome) values ${join(values, ", ")}
      on duplicate key update outcome = values(outcome)`,
  );
}

export async function audit(
  { link, ns }: Session,
  { filter, limit, cursor }: AuditParams,
): Promise<AuditPage> {
  const scope = { verb: "audit", order: "newest", namespace: ns } as const;
  const terms: Sql[] = [sql`ns = ${ns}`];
  const oneOf = (column: string, allowed: readonly string[] | undefined): void => {
    if (allowed !== undefined) terms.push(sql`${fixed(column)} in (${allowed})`);
  };
  const compare = (term: string, value: number | undefined): void => {
    if (value !== undefined) terms.push(sql`${fixed(term)} ${value}`);
  };
  oneOf("actor", filter.actors);
  oneOf("action", filter.actions);
  oneOf("target", filter.targets);
  compare("at >=", filter.after?.getTime());
  compare("at <", filter.before?.getTime());
  compare("entry <", cursor === null ? undefined : readCursor(scope, cursor, 1)[0]);
  const { rows } = await link.query(
    sql`select entry, at, id, actor, action, target, reason, outcome from escapement_audit force index (primary)
      where ${join(terms, " and ")} order by entry desc limit ${limit + 1}`,
  );
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return {
    entries: page.map((row) => ({
      at: dateOf(row[1]),
      id: textOf(row[2]),
      actor: textOf(row[3]),
      action: textOf(row[4]),
      target: textOf(row[5]),
      reason: textOrNull(row[6]),
      outcome: textOrNull(row[7]),
    })),
    cursor: rows.length > limit && last !== undefined ? writeCursor(scope, [numberOf(last[0])]) : null,
  };
}

/** Whether there are more. */
export async function pruneAudit({ link, ns }: Session, { auditMs, limit }: PruneParams): Promise<boolean> {
  if (auditMs === undefined) return false;
  const isOld = sql`ns = ${ns} and at <= ${now} - ${Math.trunc(auditMs)}`;
  link.write(sql`delete from escapement_audit where ${isOld} order by at, entry limit ${limit}`);
  const { rows } = await link.query(sql`select 1 from escapement_audit where ${isOld} limit 1`);
  return rows.length > 0;
}
