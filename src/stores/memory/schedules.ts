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
} from "../../store.ts";
import { enqueue } from "./enqueue.ts";
import { compareText } from "./queues.ts";
import { toDate } from "./row.ts";
import type { LedgerRow, Space } from "./space.ts";

export function putSchedule(space: Space, params: PutScheduleParams, now: number): PutScheduleResult {
  const old = space.schedules.get(params.key);
  if (!restsOn(params, old)) {
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
    fired: old?.fired ?? 0,
    lastJobId: old?.lastJobId ?? null,
    createdAt: old?.createdAt ?? new Date(now),
    updatedAt: new Date(now),
  });
  for (const occurrence of params.skipped) plan(space, params, occurrence, false, now);
  space.schedules.set(params.key, schedule);
  space.scheduleVersions.set(params.key, version);
  space.notices.schedulesChanged();
  return { outcome: "put", schedule: copySchedule(schedule) };
}

/** Whether the edit was made of the schedule as it stands. */
function restsOn({ ifVersion, ifNextAt }: PutScheduleParams, old: ScheduleRecord | undefined): boolean {
  if (old === undefined) return ifVersion === null;
  return old.version === ifVersion && old.nextAt?.getTime() === ifNextAt?.getTime();
}

export function removeSchedule(space: Space, key: string): boolean {
  const removed = space.schedules.delete(key);
  if (removed) space.notices.schedulesChanged();
  return removed;
}

/** By key. */
export function schedules(space: Space, keys: readonly string[] | null): ScheduleRecord[] {
  const all = [...space.schedules.values()].toSorted((a, b) => compareText(a.key, b.key));
  return all.filter(({ key }) => keys === null || keys.includes(key)).map(copySchedule);
}

export function dueSchedules(space: Space, limit: number, now: number): DueSchedules {
  const planned = schedules(space, null)
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

export function fire(space: Space, { node, fires }: FireParams, now: number): FireResult[] {
  return fires.map((one) => fireOne(space, node, one, now));
}

function fireOne(space: Space, node: string, params: Fire, now: number): FireResult {
  const schedule = space.schedules.get(params.key);
  const matches =
    schedule !== undefined &&
    (!schedule.paused || params.replaceSkipped) &&
    schedule.version === params.version &&
    (schedule.nextAt?.getTime() ?? null) === (params.nextAt?.getTime() ?? null);
  if (!matches) return { outcome: "stale", occurrences: [] };
  const key = { key: params.key, node };
  const rows = params.occurrences.map((occurrence) =>
    plan(space, key, occurrence, params.replaceSkipped, now),
  );
  const planned = rows.filter((row) => row?.fate === "planned");
  space.schedules.set(params.key, {
    ...schedule,
    nextAt: toDate(params.advanceTo?.getTime() ?? null),
    fired: schedule.fired + planned.length,
    lastJobId: planned.at(-1)?.jobId ?? schedule.lastJobId,
  });
  return { outcome: "fired", occurrences: rows.map((row) => (row === null ? "existing" : "added")) };
}

/** The row that was written, or null where the ledger had one. */
function plan(
  space: Space,
  { key, node }: { readonly key: string; readonly node: string },
  occurrence: NewOccurrence,
  replaceSkipped: boolean,
  now: number,
): LedgerRow | null {
  const ledger = space.ledgers.get(key) ?? new Map<number, LedgerRow>();
  space.ledgers.set(key, ledger);
  const fireAt = occurrence.fireAt.getTime();
  const known = ledger.get(fireAt);
  if (known !== undefined && !(replaceSkipped && known.fate === "skipped")) return null;
  const enqueued = occurrence.job === null ? undefined : enqueue(space, [occurrence.job], now)[0];
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
