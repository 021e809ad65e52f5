import { maxTrailLength, type TrailKind } from "../../../store/questions.ts";
import { now, sql } from "../connection/sql.ts";
import type { Session } from "../session.ts";

/** The job as it was before the change that the line describes. */
interface Told {
  readonly seq: number;
  readonly attempt: number;
  readonly token: number;
  readonly claimer: number;
}

/** How many excess lines a trail may have for a while: no one sees them, and deleting them has its price. */
const slack = 50;

/** Adds a line to the trail of a job. */
export function tell(
  session: Session,
  job: Told,
  kind: TrailKind,
  text: string | null,
  error: string | null = null,
): void {
  session.link.write(
    sql`insert into escapement_trail (job, at, kind, attempt, token, claimer, text, error)
      values (${job.seq}, ${now}, ${kind}, ${job.attempt}, ${job.token}, ${job.claimer}, ${text}, ${error})`,
  );
  if (kind === "log" || job.token % slack === 0) trim(session, job.seq);
}

/** The oldest lines make room. */
function trim({ link }: Session, seq: number): void {
  link.write(
    sql`delete from escapement_trail where job = ${seq} and entry <= (select entry from (
      select entry from escapement_trail where job = ${seq} order by entry desc limit 1 offset ${maxTrailLength}
    ) as surplus)`,
  );
}
