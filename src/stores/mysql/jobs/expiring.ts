import { sql } from "../connection/sql.ts";
import type { Session } from "../session.ts";

/** Adds a job to the list of those that end unless they start in time. */
export function expireLater({ link, ns }: Session, seq: number, expireAt: number): void {
  link.write(
    sql`insert into escapement_expiring (ns, expire_at, job) values (${ns}, ${expireAt}, ${seq})
      on duplicate key update job = values(job)`,
  );
}

/** Removes a job from the list. */
export function strike({ link, ns }: Session, seq: number, expireAt: number): void {
  link.write(
    sql`delete from escapement_expiring where ns = ${ns} and expire_at = ${expireAt} and job = ${seq}`,
  );
}
