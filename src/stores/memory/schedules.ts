import type {
  DueSchedules,
  FireParams,
  FireResult,
  NewOccurrence,
  OccurrenceRecord,
  OccurrencesParams,
  PutScheduleParams,
  PutScheduleResult,
  ScheduleRecord,
} from "../../store.ts";
import { enqueue } from "./enqueue.ts";
import { compareText } from "./queues.ts";
import { toDate } from "./row.ts";
import type { LedgerRow, Space } from "./space.ts";

export function putSchedule(space: Space, params: PutScheduleParams, now: number): PutScheduleResult {
  const old = space.schedules.get(params.key);
  if ((old?.version ?? null) !== params.ifVersion) {
    return { outcome: "conflict", schedule: old === undefined ? null : copySchedule(old) };
  }
  const version = (space.scheduleVersions.get(params.key) ?? 0) + 1;
  const schedule = copySchedule({
    key: params.key,
    spec: params.spec,
    job: params.job,
    paused: params.paused,
    nextAt: params.nextAt,
    version,
    createdAt: old?.createdAt ?? new Date(now),
    updatedAt: new Date(now),
  });
  space.schedules.set(params.key, schedule);
  space.scheduleVersions.set(params.key, version);
  space.notices.schedulesChanged();
  return { outcome: "put", schedule: copySchedule(schedule) };
}

export function removeSchedule(space: Space, key: string): boolean {
  const removed = space.schedules.delete(key);
  if (removed) space.notices.schedulesChanged();
  return removed;
}

/** By key. */
export function schedules(space: Space): ScheduleRecord[] {
  return [...space.schedules.values()].toSorted((a, b) => compareText(a.key, b.key)).map(copySchedule);
}

export function dueSchedules(space: Space, limit: number, now: number): DueSchedules {
  const planned = schedules(space)
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

export function fire(space: Space, params: FireParams, now: number): FireResult {
  const schedule = space.schedules.get(params.key);
  const matches =
    schedule !== undefined &&
    !schedule.paused &&
    schedule.version === params.version &&
    schedule.nextAt?.getTime() === params.nextAt.getTime();
  if (!matches) return { outcome: "stale", occurrences: [] };
  const occurrences = params.occurrences.map((occurrence) => plan(space, params, occurrence, now));
  space.schedules.set(params.key, { ...schedule, nextAt: toDate(params.advanceTo?.getTime() ?? null) });
  return { outcome: "fired", occurrences };
}

function plan(
  space: Space,
  params: FireParams,
  occurrence: NewOccurrence,
  now: number,
): "added" | "existing" {
  const ledger = space.ledgers.get(params.key) ?? new Map<number, LedgerRow>();
  space.ledgers.set(params.key, ledger);
  const fireAt = occurrence.fireAt.getTime();
  if (ledger.has(fireAt)) return "existing";
  const enqueued = occurrence.job === null ? undefined : enqueue(space, [occurrence.job], now)[0];
  ledger.set(fireAt, {
    fireAt,
    until: occurrence.until?.getTime() ?? null,
    count: occurrence.count,
    fate: occurrence.fate,
    reason: occurrence.reason,
    jobId: enqueued === undefined || enqueued.outcome === "refused" ? null : enqueued.id,
    plannedAt: now,
    node: params.node,
  });
  return "added";
}

export function occurrences(space: Space, params: OccurrencesParams): OccurrenceRecord[] {
  return [...(space.ledgers.get(params.key)?.values() ?? [])]
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
