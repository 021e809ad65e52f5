import type { SQLInputValue } from "node:sqlite";
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
import type { Tuple } from "./connection/connection.ts";
import { conditionOf, sourcesOf } from "./jobs/filter.ts";
import { resolveJob } from "./jobs/find.ts";
import { tell } from "./jobs/trail.ts";
import { dateOf, dateOrNull, deliveryOf, numberOf, seqOf, stateOf, textOf, textOrNull } from "./rows.ts";
import type { Session } from "./session.ts";

const sketchColumns =
  "seq, id, name, queue, delivery, priority, tags, state, attempt, attempts, run_at, enqueued_at, claimed_at, finished_at, " +
  `claimer, reason, substr(error, 1, ${errorHeadLength}), redrives`;

/** First chooses which jobs to look at, reading as few columns as possible; then checks the rest of the question on those. */
export function scan(session: Session, params: ScanParams): ScanResult {
  const { filter, limit, lookAt } = params;
  const scope = scopeOf(params, session.ns);
  const from = readPlace(scope, params.cursor);
  const candidates = (params.by === "ended" ? byEnd : byEnqueueing)(session, params, from);
  const looked = candidates.slice(0, lookAt);
  const places = new Map(looked.map(({ seq }, index) => [seq, index + 1]));
  const rows = matching(session, filter, looked, limit);
  const found = rows.map((row) => places.get(seqOf(row)) ?? 0);
  const end = endOfScan({ total: candidates.length, lookAt, limit, found });
  const last = looked[end.looked - 1];
  return {
    jobs: rows.map(toSketch),
    looked: end.looked,
    cursor: end.hasMore && last !== undefined ? writePlace(scope, last) : null,
  };
}

/** The numbers of what to look at, and one more where there is more. */
function byEnqueueing(
  { connection, ns }: Session,
  { filter, order, lookAt }: ScanParams,
  from: ScanPlace | null,
): ScanPlace[] {
  const oldest = order === "oldest";
  const byId = conditionOf(filter.ids === undefined ? {} : { ids: filter.ids });
  const perSource = sourcesOf(filter).map(({ table, condition }) =>
    connection
      .tuplesOnce(
        `select seq from ${table} where ${condition}${byId.sql}${from === null ? "" : ` and seq ${oldest ? ">" : "<"} ?`}
         order by seq ${oldest ? "asc" : "desc"} limit +?`,
        ...[ns, ...byId.values, ...(from === null ? [] : [from.seq])],
        lookAt + 1,
      )
      .map(seqOf),
  );
  const sign = oldest ? 1 : -1;
  // A job may be in two of them: it has one state, and is looked at once.
  const seqs = [...new Set(perSource.flat())].sort((a, b) => sign * (a - b));
  return seqs.slice(0, lookAt + 1).map((seq) => ({ at: 0, seq }));
}

/** Index: escapement_ended_finished, escapement_ended_kept. */
function byEnd(
  { connection, ns }: Session,
  { filter, order, lookAt }: ScanParams,
  from: ScanPlace | null,
): ScanPlace[] {
  const oldest = order === "oldest";
  const span = spanOf(filter);
  const direction = oldest ? "asc" : "desc";
  const behind = from === null ? "" : ` and (finished_at, seq) ${oldest ? ">" : "<"} (?, ?)`;
  const places = endStatesOf(filter).flatMap((state) =>
    ["null", "not null"].flatMap((forgetAt) =>
      connection
        .tuplesOnce(
          `select finished_at, seq from escapement_ended where ns = ? and state = ? and forget_at is ${forgetAt}${span.sql}${behind}
           order by finished_at ${direction}, seq ${direction} limit +?`,
          ...[ns, state, ...span.values, ...(from === null ? [] : [from.at, from.seq])],
          lookAt + 1,
        )
        .map(([at, seq]) => ({ at: numberOf(at), seq: numberOf(seq) })),
    ),
  );
  const sign = oldest ? 1 : -1;
  return places.sort((a, b) => sign * comparePlaces(a, b)).slice(0, lookAt + 1);
}

function matching(
  { connection, ns }: Session,
  filter: ScanFilter,
  looked: readonly ScanPlace[],
  limit: number,
): Tuple[] {
  const condition = conditionOf(baseOf(filter));
  const more = scanCondition(filter);
  return connection.tuplesOnce(
    `select ${sketchColumns} from (select key as place, value as number from json_each(?)) cross join escapement_all_jobs on seq = number
     where +ns = ?${condition.sql}${more.sql} order by place limit +?`,
    ...[JSON.stringify(looked.map(({ seq }) => seq)), ns, ...condition.values, ...more.values],
    limit,
  );
}

function baseOf({ endedAfter: _a, endedBefore: _b, error: _e, text: _t, ...base }: ScanFilter): ScanFilter {
  return base;
}

function scanCondition(filter: ScanFilter): { readonly sql: string; readonly values: SQLInputValue[] } {
  const terms: string[] = [];
  const values: SQLInputValue[] = [];
  const has = (columns: readonly string[], text: string | undefined): void => {
    if (text === undefined) return;
    const tests = needlesOf(text).flatMap((needle) =>
      columns.map((column) => {
        values.push(needle);
        return `instr(lower(${column}), ?) > 0`;
      }),
    );
    terms.push(`(${tests.map((one) => `coalesce(${one}, 0)`).join(" or ")})`);
  };
  has(["reason", "error"], filter.error);
  has(["input", "tags", "reason", "error"], filter.text);
  const span = spanOf(filter);
  const sql = `${span.sql}${terms.map((term) => ` and ${term}`).join("")}`;
  return { sql, values: [...span.values, ...values] };
}

/** When they ended, as conditions. */
function spanOf({ endedAfter, endedBefore }: ScanFilter): {
  readonly sql: string;
  readonly values: SQLInputValue[];
} {
  return {
    sql: `${endedAfter === undefined ? "" : " and finished_at >= ?"}${endedBefore === undefined ? "" : " and finished_at < ?"}`,
    values: [endedAfter, endedBefore].flatMap((instant) => instant?.getTime() ?? []),
  };
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
    claimedAt: dateOrNull(row[12]),
    finishedAt: dateOrNull(row[13]),
    claimer: textOrNull(row[14]),
    reason: textOrNull(row[15]),
    redrives: numberOf(row[17]),
    errorHead: textOrNull(row[16])?.slice(0, errorHeadLength) ?? null,
  };
}

/** Tags that are not JSON count as none. */
function tagsOf(value: Tuple[number] | undefined): string[] {
  try {
    const list: unknown = JSON.parse(textOf(value));
    return Array.isArray(list) ? list.map(String) : [];
  } catch {
    return [];
  }
}

export function note(session: Session, { ids, text }: NoteParams): void {
  for (const id of ids) {
    const job = resolveJob(session, id);
    if (job !== null) tell(session, { ...job, claimer: null }, "log", text);
  }
}

export function record(
  { connection, ns, now }: Session,
  { entries }: { readonly entries: readonly NewAuditEntry[] },
): void {
  for (const { id, actor, action, target, reason, outcome } of entries) {
    connection.run(
      `insert into escapement_audit (ns, id, at, actor, action, target, reason, outcome) values (?, ?, ?, ?, ?, ?, ?, ?)
       on conflict (ns, id) do update set outcome = excluded.outcome`,
      ...[ns, id, now, actor, action, target, reason, outcome],
    );
  }
}

export function audit({ connection, ns }: Session, { filter, limit, cursor }: AuditParams): AuditPage {
  const scope = { verb: "audit", order: "newest", namespace: ns } as const;
  const terms: string[] = [];
  const values: SQLInputValue[] = [];
  const where = (term: string, value: SQLInputValue | undefined): void => {
    if (value === undefined) return;
    terms.push(` and ${term}`);
    values.push(value);
  };
  const oneOf = (column: string, allowed: readonly string[] | undefined): void =>
    where(`${column} in (select value from json_each(?))`, allowed && JSON.stringify(allowed));
  oneOf("actor", filter.actors);
  oneOf("action", filter.actions);
  oneOf("target", filter.targets);
  where("at >= ?", filter.after?.getTime());
  where("at < ?", filter.before?.getTime());
  where("entry < ?", cursor === null ? undefined : readCursor(scope, cursor, 1)[0]);
  const rows = connection.once(
    `select * from escapement_audit not indexed where ns = ?${terms.join("")} order by entry desc limit +?`,
    ...[ns, ...values],
    limit + 1,
  );
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return {
    entries: page.map((row) => ({
      at: dateOf(row["at"]),
      id: textOf(row["id"]),
      actor: textOf(row["actor"]),
      action: textOf(row["action"]),
      target: textOf(row["target"]),
      reason: textOrNull(row["reason"]),
      outcome: textOrNull(row["outcome"]),
    })),
    cursor: rows.length > limit && last !== undefined ? writeCursor(scope, [numberOf(last["entry"])]) : null,
  };
}

const oldEntries = "select entry from escapement_audit where ns = ? and at <= ? order by at, entry limit +?";

/** Whether there are more. */
export function pruneAudit({ connection, ns, now }: Session, { auditMs, limit }: PruneParams): boolean {
  if (auditMs === undefined) return false;
  const before = Math.trunc(now - auditMs);
  connection.run(`delete from escapement_audit where entry in (${oldEntries})`, ns, before, limit);
  return connection.all(oldEntries, ns, before, 1).length > 0;
}
