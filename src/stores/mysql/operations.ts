import { readCursor, writeCursor } from "../../cursor.ts";
import { needlesOf } from "../../needle.ts";
import { endOfScan } from "../../scan-end.ts";
import { isTerminal } from "../../state.ts";
import {
  type AuditPage,
  type AuditParams,
  errorHeadLength,
  type JobSketch,
  type NewAuditEntry,
  type NoteParams,
  type PruneParams,
  type ScanFilter,
  type ScanParams,
  type ScanResult,
} from "../../store.ts";
import { lastEnded } from "./counts.ts";
import { conditionOf, indexFor } from "./filter.ts";
import { resolveJobs } from "./jobs.ts";
import type { Tuple } from "./link.ts";
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
import { fixed, join, now, type Sql, sql } from "./sql.ts";
import { tell } from "./trail.ts";

const sketchColumns = fixed(
  "j.seq, j.id, j.name, j.queue, j.delivery, j.priority, j.tags, j.state, j.attempt, j.attempts, j.run_at, j.enqueued_at, j.claimed_at, " +
    `if(j.state in ('succeeded', 'dead', 'lost', 'cancelled'), j.at, null), c.name as claimer_name, j.reason, left(j.error, ${errorHeadLength}), j.redrives`,
);

/** Which jobs are looked at is decided first, by as few columns as possible; then what was asked is checked on those. */
export async function scan(session: Session, params: ScanParams): Promise<ScanResult> {
  const { filter, order, limit, lookAt } = params;
  const scope = { verb: "scan", order, namespace: session.ns } as const;
  const [after] = params.cursor === null ? [] : readCursor(scope, params.cursor, 1);
  const [start] = await Promise.all([startOf(session, params), session.lines.refresh(session.link)]);
  const oldest = order === "oldest";
  const direction = fixed(oldest ? "asc" : "desc");
  const from = after === undefined ? start : sql`j.seq ${fixed(oldest ? ">" : "<")} ${after}`;
  const { hint, range, isOfStates } = indexFor(session, filter);
  const { ids, states } = filter;
  // The index of lines alone tells which jobs are in a state; anything more would have to be read from the jobs.
  const candidate = isOfStates
    ? fixed("true")
    : conditionOf(session, {
        ...(ids === undefined ? {} : { ids }),
        ...(states === undefined ? {} : { states }),
      });
  const { rows: candidates } = await session.link.query(
    sql`select j.seq from escapement_jobs as j ${hint} where ${range} and ${candidate} and ${from}
      order by j.seq ${direction} limit ${lookAt + 1}`,
  );
  const looked = candidates.slice(0, lookAt).map(seqOf);
  const rows = looked.length === 0 ? [] : await matching(session, filter, looked, direction, limit);
  const places = new Map(looked.map((seq, index) => [seq, index + 1]));
  const found = rows.map((row) => ({ seq: seqOf(row), place: places.get(seqOf(row)) ?? 0 }));
  const lastSeq = looked.at(-1) ?? null;
  const end = endOfScan({ total: candidates.length, lookAt, limit, found, lastSeq });
  return {
    jobs: rows.map(toSketch),
    looked: end.looked,
    cursor: end.next === null ? null : writeCursor(scope, [end.next]),
  };
}

/** Where the newest first are asked for, and only ended ones: before all jobs that came after them, of which there may be a million. */
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
  seqs: readonly number[],
  direction: Sql,
  limit: number,
): Promise<readonly Tuple[]> {
  const { rows } = await session.link.query(
    sql`select ${sketchColumns} from escapement_jobs as j force index (primary)
      left join escapement_claimers as c on c.claimer = j.claimer
      where j.seq in (${seqs}) and ${conditionOf(session, filter)} and ${scanCondition(filter)}
      order by j.seq ${direction} limit ${limit}`,
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

/** Null where there are none; what is no JSON is none. */
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

export async function record({ link, ns }: Session, entries: readonly NewAuditEntry[]): Promise<void> {
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
