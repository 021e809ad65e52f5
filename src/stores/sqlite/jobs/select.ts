import type { JobState } from "../../../job.ts";
import { follow, isRedrivable, isTerminal, openStates, redrivableStates } from "../../../state.ts";
import type { CancelOutcome, RedriveOutcome, SelectParams, SelectResult } from "../../../store/jobs.ts";
import { risen } from "../../risen.ts";
import { cancelIdle } from "../end.ts";
import { nextCursor, search } from "../questions.ts";
import { textOf } from "../rows.ts";
import type { Session } from "../session.ts";
import { countEnded } from "./counts.ts";
import { type JobRow, resolveJob } from "./find.ts";
import { place } from "./places.ts";
import { tell } from "./trail.ts";
import { takeUniqueKey, uniqueHolder } from "./unique.ts";

export function cancel(session: Session, params: SelectParams): SelectResult<CancelOutcome> {
  return forEachSelected(session, params, openStates, (job): CancelOutcome => {
    if (isTerminal(job.state)) return "terminal";
    if (job.state !== "active") {
      cancelIdle(session, job, "cancel", params.reason);
      return "cancelled";
    }
    if (!job.cancelRequested) {
      tell(session, job, "cancel-requested", params.reason);
      const { connection } = session;
      connection.run("update escapement_jobs set cancel_requested = 1 where seq = ?", job.seq);
      connection.run("update escapement_active set reason = ? where seq = ?", params.reason, job.seq);
    }
    session.notices.cancelRequested(job.id);
    return "requested";
  });
}

export function redrive(session: Session, params: SelectParams): SelectResult<RedriveOutcome> {
  return forEachSelected(session, params, redrivableStates, (job) => {
    if (!isRedrivable(job.state)) return "refused";
    return redriveOne(session, job, params.reason);
  });
}

function redriveOne(session: Session, job: JobRow, reason: string | null): RedriveOutcome {
  const { connection, ns, now } = session;
  if (job.uniqueKey !== null) {
    const holder = uniqueHolder(session, job.uniqueKey);
    if (holder !== null && holder !== job.seq) return "held";
    takeUniqueKey(
      session,
      job.uniqueKey,
      job.seq,
      job.uniqueMs === null ? null : job.enqueuedAt + job.uniqueMs,
    );
  }
  tell(session, job, "redriven", reason);
  follow(job.state, "redrive");
  connection.run("delete from escapement_ended where seq = ?", job.seq);
  if (isTerminal(job.state)) countEnded(session, job, job.state, -1);
  connection.run("insert into escapement_open (seq, ns) values (?, ?)", job.seq, ns);
  connection.run(
    `update escapement_jobs set run_at = ?, attempt = 0, crashes = 0, reason = null, expire_at = null,
       redrives = ${risen("min", "redrives")}
     where seq = ?`,
    now,
    job.seq,
  );
  place(session, { ...job, runAt: now, attempt: 0, crashes: 0, expireAt: null });
  return "redriven";
}

/** Chooses the jobs of a cancel, a redrive or a remove, then processes them one by one. */
export function forEachSelected<O extends string>(
  session: Session,
  { select }: SelectParams,
  states: readonly JobState[],
  act: (job: JobRow) => O,
): SelectResult<O | "unknown"> {
  const actOn = (id: string): { id: string; outcome: O | "unknown" } => {
    // A change to an earlier one may have changed this one.
    const job = resolveJob(session, id);
    return { id, outcome: job === null ? "unknown" : act(job) };
  };
  if ("ids" in select) return { results: select.ids.map(actOn), cursor: null };
  const asked = select.filter.states;
  const filter = { ...select.filter, states: states.filter((state) => asked?.includes(state) ?? true) };
  const { limit, cursor } = select;
  const scope = { verb: "change", order: "oldest", namespace: session.ns } as const;
  const found = search(session, "seq, id", filter, { limit: limit + 1, scope, cursor });
  const page = found.slice(0, limit);
  const results = page.map((row) => actOn(textOf(row[1])));
  return { results, cursor: nextCursor(scope, found, page) };
}
