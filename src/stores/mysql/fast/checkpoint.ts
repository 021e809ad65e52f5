import { follow } from "../../../state.ts";
import type { ClaimedJob } from "../../../store/claims.ts";
import type { CheckpointParams, CheckpointResult } from "../../../store/partitions.ts";
import { risen } from "../../risen.ts";
import type { Identity } from "../connection/identity.ts";
import type { Tuple } from "../connection/link.ts";
import { fixed, join, now, type Sql, sql } from "../connection/sql.ts";
import { lineSlot } from "../limits/lines.ts";
import { isOwned } from "../partitions.ts";
import { claimedColumns, numberOf, seqOf, toClaimedJob } from "../rows.ts";
import type { Session } from "../session.ts";
import { areSuccesses, finishPart } from "./finish.ts";
import { go, type Part, runParts } from "./parts.ts";

/** Whether a checkpoint can be tried in one packet (`parts.ts`): everything it settles was published, and named through this handle. */
export function mayCheckpointFast({ remembered }: Identity, { settled }: CheckpointParams): boolean {
  return areSuccesses(remembered.named, settled);
}

/** Null: use the path of `partitions.ts`. */
export function checkpointFast(session: Session, params: CheckpointParams): Promise<CheckpointResult | null> {
  const { named } = session.remembered;
  const parts = [
    partitionPart(session, params),
    finishPart(session, named, params.owner, params.settled, isInPartition("")),
    namePart(session, params),
  ] as const;
  return runParts(session, parts, ([, finished, jobs]) => ({ outcome: "written", finished, named: jobs }));
}

/** @param table with its dot, if several are read. */
function isInPartition(table: "" | "j."): Sql {
  return fixed(
    `${table}relayed = 1 and ${table}slot >= @escapement_first and ${table}slot < @escapement_end`,
  );
}

/** The partition must belong to the owner, and stay so until the commit. */
function partitionPart({ link, ns }: Session, params: CheckpointParams): Part<void> {
  const { owner, partition, mark } = params;
  return {
    before: [
      sql`set @escapement_first = null, @escapement_end = null`,
      sql`select first_slot, end_slot into @escapement_first, @escapement_end from escapement_partitions
        where ${isOwned(ns, owner, params)} for update`,
    ],
    condition: sql`@escapement_first is not null`,
    run() {
      if (mark !== null) {
        link.write(
          sql`update escapement_partitions set mark = ${mark.getTime()}
            where ns = ${ns} and partition_number = ${partition} and ${go}`,
        );
      }
      return { answers: [], read() {} };
    },
  };
}

/** Names the jobs that are due and unchanged, and reads them, and those that this owner named before and did not settle. */
function namePart(session: Session, { owner, name: asked, aheadMs }: CheckpointParams): Part<ClaimedJob[]> {
  const { link, ns, remembered } = session;
  const claimer = session.claimers.of(owner);
  const ids = asked.map(({ id }) => id);
  const isAsked = sql`j.ns = ${ns} and j.id in (${ids}) and (${ofTheirVersions(asked)}) and ${isInPartition("j.")}`;
  return {
    before: [],
    condition: fixed("true"),
    run() {
      if (asked.length === 0) return { answers: [], read: () => [] };
      link.write(
        sql`update escapement_jobs as j force index (escapement_jobs_id) straight_join escapement_lines as l
            on l.ns = ${ns} and l.kind = 'named' and l.queue = '' and l.name = '' and l.slot = j.${lineSlot}
          set j.state = ${follow("waiting", "claim")}, j.line = l.line, j.urgency = 0, j.at = ${now}, j.reason = null,
            j.attempt = ${fixed(risen("least", "j.attempt"))}, j.token = ${fixed(risen("least", "j.token"))}, j.claimer = ${claimer}, j.claimed_at = ${now}
          where ${go} and ${isAsked} and j.state = 'waiting' and j.run_at <= ${now} + ${Math.trunc(aheadMs)}
            and (j.expire_at is null or j.expire_at > ${now} or j.attempt > 0)`,
      );
      let rows: readonly Tuple[] = [];
      const answer = link.query(
        sql`select ${claimedColumns}, version from escapement_jobs as j force index (escapement_jobs_id)
          where ${go} and ${isAsked} and j.state = 'active' and j.claimer = ${claimer}`,
      );
      return {
        answers: [
          answer.then((found) => {
            rows = found.rows;
            return found;
          }),
        ],
        read() {
          const jobs = new Map<string, ClaimedJob>();
          for (const row of rows) {
            const job = toClaimedJob(row);
            remembered.named.hold(job, seqOf(row));
            jobs.set(keyOf({ id: job.id, version: numberOf(row[19]) }), job);
          }
          return asked.flatMap((one) => jobs.get(keyOf(one)) ?? []);
        },
      };
    },
  };
}

type Asked = CheckpointParams["name"][number];

function keyOf({ id, version }: Asked): string {
  return `${version} ${id}`;
}

/** Almost all jobs are as they were enqueued, so they share one version. */
function ofTheirVersions(asked: readonly Asked[]): Sql {
  const versions = Map.groupBy(asked, ({ version }) => version);
  const conditions = Array.from(versions, ([version, own]) =>
    versions.size === 1
      ? sql`j.version = ${version}`
      : sql`(j.version = ${version} and j.id in (${own.map(({ id }) => id)}))`,
  );
  return join(conditions, " or ");
}
