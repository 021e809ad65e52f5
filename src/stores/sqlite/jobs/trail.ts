import { maxTrailLength, type TrailKind } from "../../../store/questions.ts";
import type { Session } from "../session.ts";

/** The job as it was before the change that the line describes. */
export interface Told {
  readonly seq: number;
  readonly attempt: number;
  readonly token: number;
  readonly claimer: string | null;
}

const insertEntry =
  "insert into escapement_trail (job, at, kind, attempt, token, claimer, text, error) values (?, ?, ?, ?, ?, ?, ?, ?)";

const trim = `delete from escapement_trail where job = ? and entry <= (
  select entry from escapement_trail where job = ? order by entry desc limit 1 offset ${maxTrailLength}
)`;

/** Adds a line to the trail of a job; the oldest lines make room. */
export function tell(
  session: Session,
  job: Told,
  kind: TrailKind,
  text: string | null,
  error: string | null = null,
): void {
  const { connection, now } = session;
  connection.run(insertEntry, job.seq, now, kind, job.attempt, job.token, job.claimer, text, error);
  connection.run(trim, job.seq, job.seq);
}
