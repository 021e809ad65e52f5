import assert from "node:assert/strict";
import type {
  Fire,
  FireResult,
  NewOccurrence,
  PutScheduleParams,
  ScheduleRecord,
} from "../../store/schedules.ts";
import type { Store } from "../../store/store.ts";
import { hour, later, newJob, type Scene } from "./scene.ts";

export const rule = (
  key: string,
  nextAt: Date | null,
  changes: Partial<PutScheduleParams> = {},
): PutScheduleParams => ({
  key,
  spec: '{"cron":"0 3 * * *"}',
  job: '{"name":"work"}',
  paused: false,
  nextAt,
  ifVersion: null,
  ifNextAt: null,
  skipped: [],
  node: "editor",
  ...changes,
});

/** An edit of the schedule as it was read. */
export const edit = (
  { key, version, nextAt: ifNextAt }: ScheduleRecord,
  nextAt: Date | null,
  changes: Partial<PutScheduleParams> = {},
): PutScheduleParams => rule(key, nextAt, { ifVersion: version, ifNextAt, ...changes });

export const planned = (key: string, fireAt: Date): NewOccurrence => ({
  fireAt,
  until: null,
  count: 1,
  fate: "planned",
  reason: null,
  job: newJob(`{${key}}@${fireAt.toISOString()}`, { schedule: key, fireAt, runAt: fireAt }),
});

export const firing = (schedule: ScheduleRecord, fireAt: Date, changes: Partial<Fire> = {}): Fire => ({
  key: schedule.key,
  version: schedule.version,
  nextAt: fireAt,
  occurrences: [planned(schedule.key, fireAt)],
  advanceTo: later(fireAt, hour),
  replaceSkipped: false,
  ...changes,
});

export async function fire(store: Store, params: Fire, node = "planner-1"): Promise<FireResult> {
  const [result] = await store.fire({ node, fires: [params] });
  assert(result);
  return result;
}

export async function put(store: Store, params: PutScheduleParams): Promise<ScheduleRecord> {
  const { outcome, schedule } = await store.putSchedule(params);
  assert(outcome === "put" && schedule !== null, `the schedule ${params.key} was not put`);
  return schedule;
}

export const ledger = (scene: Scene, key: string) =>
  scene.store.occurrences({ key, from: new Date(0), to: new Date("2100-01-01"), limit: 100 });
