import type {
  DueSchedules,
  Fire,
  FireParams,
  FireResult,
  NewOccurrence,
  OccurrenceRecord,
  OccurrencesParams,
  PutScheduleParams,
  PutScheduleResult,
  ScheduleRecord,
} from "../../store/schedules.ts";
import type { Data, LedgerRow } from "./data/data.ts";
import { enqueue } from "./enqueue.ts";
import { compareText } from "./queues.ts";
import { toDate } from "./rows.ts";
import type { Session } from "./session.ts";

export function putSchedule({ data, now }: Session, params: PutScheduleParams): PutScheduleResult {
  const old = data.schedules.get(params.key);
  if (!restsOn(params, old)) {
    return { outcome: "conflict", schedule: old === undefined ? null : copySchedule(old) };
  }
  const version = (data.scheduleVersions.get(params.key) ?? 0) + 1;
  const schedule = copySchedule({
    key: params.key,
    spec: params.spec,
    job: params.job,
    paused: params.paused,
    nextAt: params.nextAt,
    version,
    fired: old?.fired ?? 0,
    lastJobId: old?.lastJobId ?? null,
    createdAt: old?.createdAt ?? new Date(now),
    updatedAt: new Date(now),
  });
  for (const occurrence of params.skipped) plan(data, params, occurrence, false, now);
  data.schedules.set(params.key, schedule);
  data.scheduleVersions.set(params.key, version);
  data.notices.draft.schedulesChanged();
  return { outcome: "put", schedule: copySchedule(schedule) };
}

/** Whether the edit is based on the current schedule. */
function restsOn({ ifVersion, ifNextAt }: PutScheduleParams, old: ScheduleRecord | undefined): boolean {
  if (old === undefined) return ifVersion === null;
  return old.version === ifVersion && old.nextAt?.getTime() === ifNextAt?.getTime();
}

export function removeSchedule({ data }: Session, { key }: { readonly key: string }): boolean {
  const removed = data.schedules.delete(key);
  if (removed) data.notices.draft.schedulesChanged();
  return removed;
}

/** By key. */
export function schedules(
  { data }: Session,
  { keys }: { readonly keys: readonly string[] | null },
): ScheduleRecord[] {
  const all = [...data.schedules.values()].toSorted((a, b) => compareText(a.key, b.key));
  return all.filter(({ key }) => keys === null || keys.includes(key)).map(copySchedule);
}

export function dueSchedules(session: Session, { limit }: { readonly limit: number }): DueSchedules {
  const { now } = session;
  const planned = schedules(session, { keys: null })
    .flatMap((schedule) =>
      schedule.paused || schedule.nextAt === null ? [] : [{ schedule, at: schedule.nextAt.getTime() }],
    )
    .toSorted((a, b) => a.at - b.at);
  const due = planned.filter(({ at }) => at <= now);
  const next = planned.find(({ at }) => at > now);
  return {
    now: new Date(now),
    due: due.slice(0, limit).map(({ schedule }) => schedule),
    nextAt: toDate(next?.at ?? null),
  };
}

export function fire({ data, now }: Session, { node, fires }: FireParams): FireResult[] {
  return fires.map((one) => fireOne(data, node, one, now));
}

function fireOne(data: Data, node: string, params: Fire, now: number): FireResult {
  const schedule = data.schedules.get(params.key);
  const matches =
    schedule !== undefined &&
    (!schedule.paused || params.replaceSkipped) &&
    schedule.version === params.version &&
    (schedule.nextAt?.getTime() ?? null) === (params.nextAt?.getTime() ?? null);
  if (!matches) return { outcome: "stale", occurrences: [] };
  const key = { key: params.key, node };
  const rows = params.occurrences.map((occurrence) =>
    plan(data, key, occurrence, params.replaceSkipped, now),
  );
  const planned = rows.filter((row) => row?.fate === "planned");
  data.schedules.set(params.key, {
    ...schedule,
    nextAt: toDate(params.advanceTo?.getTime() ?? null),
    fired: schedule.fired + planned.length,
    lastJobId: planned.at(-1)?.jobId ?? schedule.lastJobId,
  });
  return { outcome: "fired", occurrences: rows.map((row) => (row === null ? "existing" : "added")) };
}

/** The row that was written, or null if the ledger had one. */
function plan(
  data: Data,
  { key, node }: { readonly key: string; readonly node: string },
  occurrence: NewOccurrence,
  replaceSkipped: boolean,
  now: number,
): LedgerRow | null {
  const ledger = data.ledgers.get(key) ?? new Map<number, LedgerRow>();
  data.ledgers.set(key, ledger);
  const fireAt = occurrence.fireAt.getTime();
  const known = ledger.get(fireAt);
  if (known !== undefined && !(replaceSkipped && known.fate === "skipped")) return null;
  const enqueued = occurrence.job === null ? undefined : enqueue(data, [occurrence.job], now)[0];
  const row: LedgerRow = {
    fireAt,
    until: occurrence.until?.getTime() ?? null,
    count: occurrence.count,
    fate: occurrence.fate,
    reason: occurrence.reason,
    jobId: enqueued === undefined || enqueued.outcome === "refused" ? null : enqueued.id,
    plannedAt: now,
    node,
  };
  ledger.set(fireAt, row);
  return row;
}

export function occurrences({ data }: Session, params: OccurrencesParams): OccurrenceRecord[] {
  return [...(data.ledgers.get(params.key)?.values() ?? [])]
    .filter(({ fireAt }) => fireAt >= params.from.getTime() && fireAt < params.to.getTime())
    .toSorted((a, b) => a.fireAt - b.fireAt)
    .slice(0, params.limit)
    .map((row) => ({
      key: params.key,
      fireAt: new Date(row.fireAt),
      until: toDate(row.until),
      count: row.count,
      fate: row.fate,
      reason: row.reason,
      jobId: row.jobId,
      plannedAt: new Date(row.plannedAt),
      node: row.node,
    }));
}

function copySchedule(schedule: ScheduleRecord): ScheduleRecord {
  return {
    ...schedule,
    nextAt: toDate(schedule.nextAt?.getTime() ?? null),
    createdAt: new Date(schedule.createdAt),
    updatedAt: new Date(schedule.updatedAt),
  };
}
