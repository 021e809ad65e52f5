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
} from "../../store/schedules.ts";
import { NoticeDraft } from "../notice-draft.ts";
import { boundJob, textList, toJson, toMs } from "./connection/encode.ts";
import { addReported } from "./connection/reported-notices.ts";
import { dateOf, dateOrNull, listOf, numberOf, recordOf, textOf, textOrNull, tuplesOf } from "./rows.ts";
import type { Session } from "./session.ts";

/** The columns of schedule_json. */
const columns = "key, spec, job, paused, next_at, version, fired, last_job_id, created_at, updated_at";

export async function putSchedule(session: Session, params: PutScheduleParams): Promise<PutScheduleResult> {
  const answer = recordOf(
    await session.run(
      `select ${session.functions}.put_schedule($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::text::json)::text as answer`,
      [
        session.ns,
        session.now,
        params.key,
        params.spec,
        params.job,
        params.paused,
        toMs(params.nextAt),
        params.ifVersion,
        toMs(params.ifNextAt),
        params.node,
        toJson(params.skipped.map(newOccurrence)),
      ],
    ),
  );
  const schedule = answer["schedule"] === null ? null : toSchedule(listOf(answer["schedule"]));
  if (answer["outcome"] !== "put") return { outcome: "conflict", schedule };
  session.publish([{ kind: "schedules" }]);
  return { outcome: "put", schedule };
}

export async function removeSchedule(session: Session, { key }: { readonly key: string }): Promise<boolean> {
  const answer = await session.run(
    `with gone as (delete from ${session.schema}.schedules where ns = $1 and key = $2 returning 1)
     select count(*)::text as answer from gone`,
    [session.ns, key],
  );
  const removed = numberOf(answer) > 0;
  if (removed) session.publish([{ kind: "schedules" }]);
  return removed;
}

/** By key; null: all of them. */
export async function schedules(
  session: Session,
  { keys }: { readonly keys: readonly string[] | null },
): Promise<ScheduleRecord[]> {
  const answer = await session.run(
    `select coalesce(json_agg(json_build_array(${columns}) order by key), '[]')::text as answer
     from ${session.schema}.schedules where ns = $1 and ($2::text is null or key = any ($2::text::text[]))`,
    [session.ns, keys && textList(keys)],
  );
  return tuplesOf(answer).map(toSchedule);
}

export async function dueSchedules(
  session: Session,
  { limit }: { readonly limit: number },
): Promise<DueSchedules> {
  const { schema, functions } = session;
  const planned = `from ${schema}.schedules where ns = $1 and not paused and next_at is not null`;
  const answer = await session.run(
    `with clock as materialized (select ${functions}.now_ms($2::bigint) as now)
     select json_build_object('now', now, 'due', (
         select coalesce(json_agg(json_build_array(${columns}) order by next_at, key), '[]') from (
           select * ${planned} and next_at <= now order by next_at, key limit $3) due),
       'nextAt', (select next_at ${planned} and next_at > now order by next_at limit 1))::text as answer from clock`,
    [session.ns, session.now, limit],
  );
  const { now, due, nextAt } = recordOf(answer);
  return { now: dateOf(now), due: tuplesOf(due).map(toSchedule), nextAt: dateOrNull(nextAt) };
}

export async function fire(session: Session, { node, fires }: FireParams): Promise<FireResult[]> {
  if (fires.length === 0) return [];
  const list = fires.map((one) => ({
    key: one.key,
    version: one.version,
    next_at: toMs(one.nextAt),
    occurrences: one.occurrences.map(newOccurrence),
    advance_to: toMs(one.advanceTo),
    replace_skipped: one.replaceSkipped,
  }));
  const answer = recordOf(
    await session.run(
      `select ${session.functions}.fire_schedules($1, $2, $3, $4::text::json)::text as answer`,
      [session.ns, session.now, node, toJson(list)],
    ),
  );
  const draft = new NoticeDraft();
  addReported(draft, answer["notices"]);
  session.publish(draft.toNotices());
  return listOf(answer["fires"]).map((added) =>
    added === null
      ? { outcome: "stale", occurrences: [] }
      : { outcome: "fired", occurrences: listOf(added).map((one) => (one === true ? "added" : "existing")) },
  );
}

function newOccurrence(occurrence: NewOccurrence) {
  return {
    fire_at: occurrence.fireAt.getTime(),
    until: toMs(occurrence.until),
    count: occurrence.count,
    fate: occurrence.fate,
    reason: occurrence.reason,
    job: occurrence.job === null ? null : boundJob(occurrence.job),
  };
}

export async function occurrences(session: Session, params: OccurrencesParams): Promise<OccurrenceRecord[]> {
  const answer = await session.run(
    `select coalesce(json_agg(json_build_array(fire_at, until, count, fate, reason, job_id, planned_at, node) order by fire_at), '[]')::text as answer
     from (select * from ${session.schema}.occurrences where ns = $1 and key = $2 and fire_at >= $3 and fire_at < $4
           order by fire_at limit $5) page`,
    [session.ns, params.key, params.from.getTime(), params.to.getTime(), params.limit],
  );
  return tuplesOf(answer).map(([fireAt, until, count, fate, reason, jobId, plannedAt, node]) => ({
    key: params.key,
    fireAt: dateOf(fireAt),
    until: dateOrNull(until),
    count: numberOf(count),
    fate: fate === "skipped" ? "skipped" : "planned",
    reason: textOrNull(reason),
    jobId: textOrNull(jobId),
    plannedAt: dateOf(plannedAt),
    node: textOf(node),
  }));
}

function toSchedule(row: readonly unknown[]): ScheduleRecord {
  return {
    key: textOf(row[0]),
    spec: textOf(row[1]),
    job: textOf(row[2]),
    paused: row[3] === true,
    nextAt: dateOrNull(row[4]),
    version: numberOf(row[5]),
    fired: numberOf(row[6]),
    lastJobId: textOrNull(row[7]),
    createdAt: dateOf(row[8]),
    updatedAt: dateOf(row[9]),
  };
}
