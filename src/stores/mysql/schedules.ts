import { maxCount } from "../../state.ts";
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
import type { Tuple } from "./connection/link.ts";
import { fixed, now, sql } from "./connection/sql.ts";
import { enqueue } from "./enqueue.ts";
import { newTag } from "./jobs/insert.ts";
import { dateOf, dateOrNull, numberOf, textOf, textOrNull } from "./rows.ts";
import type { Session } from "./session.ts";

const columns = fixed(
  "schedule_key, spec, job, paused, next_at, version, fired, last_job_id, created_at, updated_at",
);

export async function putSchedule(session: Session, params: PutScheduleParams): Promise<PutScheduleResult> {
  const { link, ns } = session;
  const { key } = params;
  // The version's row is the lock under which a schedule is changed, even one that does not exist yet.
  link.write(
    sql`insert into escapement_schedule_versions (ns, schedule_key, version) values (${ns}, ${key}, 0)
      on duplicate key update version = version`,
  );
  const [{ rows }, old] = await Promise.all([
    link.query(
      sql`select version from escapement_schedule_versions where ns = ${ns} and schedule_key = ${key} for update`,
    ),
    findSchedule(session, key),
  ]);
  if (!restsOn(params, old)) return { outcome: "conflict", schedule: old };
  const at = new Date(session.now);
  const schedule: ScheduleRecord = {
    key,
    spec: params.spec,
    job: params.job,
    paused: params.paused,
    nextAt: params.nextAt === null ? null : new Date(params.nextAt),
    version: Math.min(numberOf(rows[0]?.[0]), maxCount - 1) + 1,
    fired: old?.fired ?? 0,
    lastJobId: old?.lastJobId ?? null,
    createdAt: old?.createdAt ?? at,
    updatedAt: at,
  };
  await plan(session, params, params.skipped, false);
  writeSchedule(session, schedule);
  session.notices.schedulesChanged();
  return { outcome: "put", schedule };
}

/** Whether the edit is based on the current schedule. */
function restsOn({ ifVersion, ifNextAt }: PutScheduleParams, old: ScheduleRecord | null): boolean {
  if (old === null) return ifVersion === null;
  return old.version === ifVersion && old.nextAt?.getTime() === ifNextAt?.getTime();
}

function writeSchedule({ link, ns }: Session, schedule: ScheduleRecord): void {
  const { key, spec, job, paused, version, fired, lastJobId } = schedule;
  const [createdAt, updatedAt] = [schedule.createdAt.getTime(), schedule.updatedAt.getTime()];
  link.write(
    sql`update escapement_schedule_versions set version = ${version} where ns = ${ns} and schedule_key = ${key}`,
  );
  link.write(
    sql`insert into escapement_schedules (ns, ${columns})
      values (${ns}, ${key}, ${spec}, ${job}, ${paused}, ${schedule.nextAt?.getTime() ?? null}, ${version}, ${fired}, ${lastJobId},
        ${createdAt}, ${updatedAt})
      on duplicate key update spec = values(spec), job = values(job), paused = values(paused), next_at = values(next_at),
        version = values(version), updated_at = values(updated_at)`,
  );
}

export async function removeSchedule(session: Session, { key }: { readonly key: string }): Promise<boolean> {
  const { affected } = await session.link.query(
    sql`delete from escapement_schedules where ns = ${session.ns} and schedule_key = ${key}`,
  );
  if (affected > 0) session.notices.schedulesChanged();
  return affected > 0;
}

/** By key. */
export async function schedules(
  { link, ns }: Session,
  { keys }: { readonly keys: readonly string[] | null },
): Promise<ScheduleRecord[]> {
  const asked = keys === null ? fixed("") : sql`and schedule_key in (${keys})`;
  const { rows } = await link.query(
    sql`select ${columns} from escapement_schedules where ns = ${ns} ${asked} order by schedule_key`,
  );
  return rows.map(toSchedule);
}

export async function dueSchedules(
  session: Session,
  { limit }: { readonly limit: number },
): Promise<DueSchedules> {
  const { link, ns } = session;
  const planned = sql`escapement_schedules force index (escapement_schedules_next) where ns = ${ns} and paused = 0`;
  const [due, next] = await Promise.all([
    link.query(
      sql`select ${columns} from ${planned} and next_at <= ${now} order by next_at, schedule_key limit ${limit}`,
    ),
    link.query(sql`select min(next_at) from ${planned} and next_at > ${now}`),
  ]);
  return {
    now: new Date(session.now),
    due: due.rows.map(toSchedule),
    nextAt: dateOrNull(next.rows[0]?.[0] ?? null),
  };
}

/** Reads all in one trip, and locks them in key order; what they plan is written in the order given. */
export async function fire(session: Session, { node, fires }: FireParams): Promise<FireResult[]> {
  const { link, ns } = session;
  if (fires.length === 0) return [];
  const { rows } = await link.query(
    sql`select ${columns} from escapement_schedules where ns = ${ns} and schedule_key in (${fires.map(({ key }) => key)})
      order by schedule_key for update`,
  );
  const standing = new Map(rows.map(toSchedule).map((schedule) => [schedule.key, schedule]));
  const results: FireResult[] = [];
  for (const one of fires) {
    const schedule = standing.get(one.key);
    if (schedule === undefined || !matches(schedule, one)) {
      results.push({ outcome: "stale", occurrences: [] });
      continue;
    }
    const planned = await plan(session, { key: one.key, node }, one.occurrences, one.replaceSkipped);
    standing.set(one.key, advance(session, schedule, one, planned));
    results.push({
      outcome: "fired",
      occurrences: planned.map((row) => (row === null ? "existing" : "added")),
    });
  }
  return results;
}

function matches(schedule: ScheduleRecord, one: Fire): boolean {
  return (
    (!schedule.paused || one.replaceSkipped) &&
    schedule.version === one.version &&
    (schedule.nextAt?.getTime() ?? null) === (one.nextAt?.getTime() ?? null)
  );
}

function advance(
  { link, ns }: Session,
  schedule: ScheduleRecord,
  one: Fire,
  planned: readonly (Planned | null)[],
): ScheduleRecord {
  const added = planned.filter((row) => row?.fate === "planned");
  const fired = Math.min(schedule.fired + added.length, Number.MAX_SAFE_INTEGER);
  const lastJobId = added.at(-1)?.jobId ?? schedule.lastJobId;
  link.write(
    sql`update escapement_schedules set next_at = ${one.advanceTo?.getTime() ?? null}, fired = ${fired}, last_job_id = ${lastJobId}
      where ns = ${ns} and schedule_key = ${one.key}`,
  );
  return { ...schedule, nextAt: one.advanceTo, fired, lastJobId };
}

interface Planned {
  readonly fate: OccurrenceFate;
  readonly jobId: string | null;
}

/**
 * For each the row that was written, or null if the ledger had one. However many there are, they take the trips of one: catching
 * up after an outage must not keep the schedule locked for long.
 */
async function plan(
  session: Session,
  { key, node }: { readonly key: string; readonly node: string },
  occurrences: readonly NewOccurrence[],
  replaceSkipped: boolean,
): Promise<(Planned | null)[]> {
  if (occurrences.length === 0) return [];
  const { link, ns } = session;
  const times = occurrences.map(({ fireAt }) => fireAt.getTime());
  const { rows } = await link.query(
    sql`select fire_at, fate from escapement_occurrences where ns = ${ns} and schedule_key = ${key} and fire_at in (${times}) for update`,
  );
  const fates = new Map(rows.map((row) => [numberOf(row[0]), textOf(row[1])]));
  const fresh = new Set(
    occurrences.filter(({ fireAt, fate }) => {
      const known = fates.get(fireAt.getTime());
      if (known !== undefined && !(replaceSkipped && known === "skipped")) return false;
      fates.set(fireAt.getTime(), fate);
      return true;
    }),
  );
  const jobs = [...fresh].flatMap(({ job }) => job ?? []);
  const enqueued = jobs.length === 0 ? [] : await enqueue(session, jobs, newTag());
  const jobIds = new Map(
    jobs.map((job, index) => {
      const result = enqueued[index];
      return [job, result === undefined || result.outcome === "refused" ? null : result.id];
    }),
  );
  return occurrences.map((occurrence): Planned | null => {
    if (!fresh.has(occurrence)) return null;
    const { fate, reason, count, fireAt, until, job } = occurrence;
    const jobId = job === null ? null : (jobIds.get(job) ?? null);
    link.write(
      sql`insert into escapement_occurrences (ns, schedule_key, fire_at, until, covered, fate, reason, job_id, planned_at, node)
        values (${ns}, ${key}, ${fireAt.getTime()}, ${until?.getTime() ?? null}, ${count}, ${fate}, ${reason}, ${jobId}, ${now}, ${node})
        on duplicate key update until = values(until), covered = values(covered), fate = values(fate), reason = values(reason),
          job_id = values(job_id), planned_at = values(planned_at), node = values(node)`,
    );
    return { fate, jobId };
  });
}

export async function occurrences(
  { link, ns }: Session,
  params: OccurrencesParams,
): Promise<OccurrenceRecord[]> {
  const { rows } = await link.query(
    sql`select schedule_key, fire_at, until, covered, fate, reason, job_id, planned_at, node from escapement_occurrences
      where ns = ${ns} and schedule_key = ${params.key} and fire_at >= ${params.from.getTime()} and fire_at < ${params.to.getTime()}
      order by fire_at limit ${params.limit}`,
  );
  return rows.map((row) => ({
    key: textOf(row[0]),
    fireAt: dateOf(row[1]),
    until: dateOrNull(row[2]),
    count: numberOf(row[3]),
    fate: textOf(row[4]) === "skipped" ? "skipped" : "planned",
    reason: textOrNull(row[5]),
    jobId: textOrNull(row[6]),
    plannedAt: dateOf(row[7]),
    node: textOf(row[8]),
  }));
}

async function findSchedule({ link, ns }: Session, key: string): Promise<ScheduleRecord | null> {
  const { rows } = await link.query(
    sql`select ${columns} from escapement_schedules where ns = ${ns} and schedule_key = ${key} for update`,
  );
  return rows[0] === undefined ? null : toSchedule(rows[0]);
}

function toSchedule(row: Tuple): ScheduleRecord {
  return {
    key: textOf(row[0]),
    spec: textOf(row[1]),
    job: textOf(row[2]),
    paused: numberOf(row[3]) !== 0,
    nextAt: dateOrNull(row[4]),
    version: numberOf(row[5]),
    fired: numberOf(row[6]),
    lastJobId: textOrNull(row[7]),
    createdAt: dateOf(row[8]),
    updatedAt: dateOf(row[9]),
  };
}
