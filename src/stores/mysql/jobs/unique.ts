import { isTerminal } from "../../../state.ts";
import { sql } from "../connection/sql.ts";
import { numberOf, numberOrNull, stateOf } from "../rows.ts";
import type { Session } from "../session.ts";

/** Takes the lock of a unique key, and returns which job holds the key now. */
export async function uniqueHolder(session: Session, key: string): Promise<number | null> {
  const { link, ns } = session;
  link.write(
    sql`insert into escapement_unique_keys (ns, unique_key, job, until) values (${ns}, ${key}, 0, 0)
      on duplicate key update job = job`,
  );
  const { rows } = await link.query(
    sql`select job, until from escapement_unique_keys where ns = ${ns} and unique_key = ${key} for update`,
  );
  const job = numberOf(rows[0]?.[0]);
  const until = numberOrNull(rows[0]?.[1]);
  if (job === 0) return null;
  if (until !== null) return until > session.now ? job : null;
  const holder = sql`select state from escapement_jobs where seq = ${job}`;
  const committed = await session.peek(holder);
  // If others cannot see it, this transaction created it.
  const { rows: found } = committed.rows.length > 0 ? committed : await link.query(holder);
  return found[0] !== undefined && !isTerminal(stateOf(found[0][0])) ? job : null;
}

/** @param until null: while the job is not terminal. */
export function takeUniqueKey({ link, ns }: Session, key: string, seq: number, until: number | null): void {
  link.write(
    sql`update escapement_unique_keys set job = ${seq}, until = ${until} where ns = ${ns} and unique_key = ${key}`,
  );
}
