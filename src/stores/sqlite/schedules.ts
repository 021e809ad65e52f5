import type {
  DueSchedules,
  Fire,
  FireParams,
  FireResult,
  NewOccurrence,
  OccurrenceFate,
  OccurrenceRecord,
  OccurrencesParams,
  PutScheduleParams,
  PutScheduleResult,
  ScheduleRecord,
} from "../../store/schedules.ts";
import { addedUp, risen } from "../risen.ts";
import type { Row } from "./connection/connection.ts";
import { enqueue } from "./enqueue.ts";
import { dateOf, dateOrNull, numberOf, textOf, textOrNull } from "./rows.ts";
import type { Session } from "./session.ts";

const columns = "key, spec, job, paused, next_at, version, fired, last_job_id, created_at, updated_at";

export function putSchedule(session: Session, params: PutScheduleParams): PutScheduleResult {
  const { connection, ns, now } = session;
  const old = findSchedule(session, params.key);
  if (!restsOn(params, old)) return { outcome: "conflict", schedule: old };
  const version = connection.get(
    `insert into escapement_schedule_versions (ns, key, version) values (?, ?, 1)
     on conflict do update set version = ${risen("min", "version")} returning version`,
    ns,
    params.key,
  );
  connection.run(
    `insert or replace into escapement_schedules (ns, ${columns}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ns,
    params.key,
    params.spec,
    params.job,
    params.paused ? 1 : 0,
    params.nextAt?.getTime() ?? null,
    numberOf(version?.["version"]),
    old?.fired ?? 0,
    old?.lastJobId ?? null,
    old?.createdAt.getTime() ?? now,
    now,
  );
  for (const occurrence of params.skipped) plan(session, params, occurrence, false);
  session.notices.schedulesChanged();
  return { outcome: "put", schedule: findSchedule(session, params.key) };
}

/** Whether the edit is based on the current schedule. */
function restsOn({ ifVersion, ifNextAt }: PutScheduleParams, old: ScheduleRecord | null): boolean {
  if (old === null) return ifVersion === null;
  return old.version === ifVersion && old.nextAt?.getTime() === ifNextAt?.getTime();
}

export function removeSchedule(session: Session, { key }: { readonly key: string }): boolean {
  const { connection, ns } = session;
  const removed = connection.run("delete from escapement_schedules where ns = ? and key = ?", ns, key) > 0;
  if (removed) session.notices.schedulesChanged();
  return removed;
}

/** By key. */
export function schedules(
  { connection, ns }: Session,
  { keys }: { readonly keys: readonly string[] | null },
): ScheduleRecord[] {
  const chosen = keys === null ? "" : "and key in (select value from json_each(?))";
  return connection
    .all(
      `select ${columns} from escapement_schedules where ns = ? ${chosen} order by key`,
      ns,
      ...(keys === null ? [] : [JSON.stringify(keys)]),
    )
    .map(toSchedule);
}

export function dueSchedules(
  { connection, ns, now }: Session,
  { limit }: { readonly limit: number },
): DueSchedules {
  const planned = "ns = ? and paused = 0 and next_at is not null";
  const due = connection.all(
    `select ${columns} from escapement_schedules where ${planned} and next_at <= ? order by next_at, key limit +?`,
    ns,
    now,
    limit,
  );
  const next = connection.get(
    `select next_at from escapement_schedules where ${planned} and next_at > ? order by next_at limit 1`,
    ns,
    now,
  );
  return { now: new Date(now), due: due.map(toSchedule), nextAt: dateOrNull(next?.["next_at"] ?? null) };
}

export function fire(session: Session, { node, fires }: FireParams): FireResult[] {
  return fires.map((one) => fireOne(session, node, one));
}

function fireOne(session: Session, node: string, params: Fire): FireResult {
  const { connection, ns } = session;
  const advanced = connection.run(
    `update escapement_schedules set next_at = ?
     where ns = ? and key = ? and version = ? and next_at is ? and (paused = 0 or ?)`,
    params.advanceTo?.getTime() ?? null,
    ns,
    params.key,
    params.version,
    params.nextAt?.getTime() ?? null,
    params.replaceSkipped ? 1 : 0,
  );
  if (advanced === 0) return { outcome: "stale", occurrences: [] };
  const ledger = { key: params.key, node };
  const rows = params.occurrences.map((one) => plan(session, ledger, one, params.replaceSkipped));
  const planned = rows.filter((row) => row?.fate === "planned");
  if (planned.length > 0) {
    connection.run(
      `update escapement_schedules set fired = ${addedUp("min", "fired", "?")}, last_job_id = coalesce(?, last_job_id) where ns = ? and key = ?`,
      planned.length,
      planned.at(-1)?.jobId ?? null,
      ns,
      params.key,
    );
  }
  return { outcome: "fired", occurrences: rows.map((row) => (row === null ? "existing" : "added")) };
}

/** What was written, or null if the ledger had a row. */
function plan(
  session: Session,
  { key, node }: { readonly key: string; readonly node: string },
  occurrence: NewOccurrence,
  replaceSkipped: boolean,
): { readonly fate: OccurrenceFate; readonly jobId: string | null } | null {
  const { connection, ns, now } = session;
  const { fate, reason } = occurrence;
  const fireAt = occurrence.fireAt.getTime();
  const known = connection.get(
    "select fate from escapement_occurrences where ns = ? and key = ? and fire_at = ?",
    ns,
    key,
    fireAt,
  );
  if (known !== undefined && !(replaceSkipped && known["fate"] === "skipped")) return null;
  const job = occurrence.job === null ? undefined : enqueue(session, [occurrence.job])[0];
  const jobId = job === undefined || job.outcome === "refused" ? null : job.id;
  connection.run(
    `insert or replace into escapement_occurrences (ns, key, fire_at, until, count, fate, reason, job_id, planned_at, node)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ns,
    key,
    fireAt,
    occurrence.until?.getTime() ?? null,
    occurrence.count,
    fate,
    reason,
    jobId,
    now,
    node,
  );
  return { fate, jobId };
}

export function occurrences({ connection, ns }: Session, params: OccurrencesParams): OccurrenceRecord[] {
  const rows = connection.all(
    `select key, fire_at, until, count, fate, reason, job_id, planned_at, node from escapement_occurrences
     where ns = ? and key = ? and fire_at >= ? and fire_at < ? order by fire_at limit +?`,
    ns,
    params.key,
    params.from.getTime(),
    params.to.getTime(),
    params.limit,
  );
  return rows.map((row) => ({
    key: textOf(row["key"]),
    fireAt: dateOf(row["fire_at"]),
    until: dateOrNull(row["until"]),
    count: numberOf(row["count"]),
    fate: row["fate"] === "skipped" ? "skipped" : "planned",
    reason: textOrNull(row["reason"]),
    jobId: textOrNull(row["job_id"]),
    plannedAt: dateOf(row["planned_at"]),
    node: textOf(row["node"]),
  }));
}

function findSchedule({ connection, ns }: Session, key: string): ScheduleRecord | null {
  const row = connection.get(`select ${columns} from escapement_schedules where ns = ? and key = ?`, ns, key);
  return row === undefined ? null : toSchedule(row);
}

function toSchedule(row: Row): ScheduleRecord {
  return {
    key: textOf(row["key"]),
    spec: textOf(row["spec"]),
    job: textOf(row["job"]),
    paused: row["paused"] !== 0,
    nextAt: dateOrNull(row["next_at"]),
    version: numberOf(row["version"]),
    fired: numberOf(row["fired"]),
    lastJobId: textOrNull(row["last_job_id"]),
    createdAt: dateOf(row["created_at"]),
    updatedAt: dateOf(row["updated_at"]),
  };
}
