import { numberOf } from "../rows.ts";
import type { Session } from "../session.ts";

/** The job that holds a unique key now. */
export function uniqueHolder({ connection, ns, now }: Session, key: string): number | null {
  const row = connection.get(
    `select job from escapement_unique_keys where ns = ? and key = ? and case
       when until is null then exists (select 1 from escapement_open where seq = job)
       else until > ? end`,
    ns,
    key,
    now,
  );
  return row === undefined ? null : numberOf(row["job"]);
}

/** @param until null: while the job is not terminal. */
export function takeUniqueKey(
  { connection, ns }: Session,
  key: string,
  seq: number,
  until: number | null,
): void {
  connection.run(
    `insert into escapement_unique_keys (ns, key, job, until) values (?, ?, ?, ?)
     on conflict do update set job = excluded.job, until = excluded.until`,
    ns,
    key,
    seq,
    until,
  );
}
