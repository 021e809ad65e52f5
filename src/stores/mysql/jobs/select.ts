import type { JobState } from "../../../job.ts";
import { follow, isRedrivable, isTerminal, openStates, redrivableStates } from "../../../state.ts";
import type { CancelOutcome, RedriveOutcome, SelectParams, SelectResult } from "../../../store/jobs.ts";
import { risen } from "../../risen.ts";
import { fixed, sql } from "../connection/sql.ts";
import { cancelIdle, tellChildren } from "../end.ts";
import { waitAgain } from "../limits/lane-jobs.ts";
import { nextCursor, search } from "../questions.ts";
import { textOf } from "../rows.ts";
import type { Session } from "../session.ts";
import { countEnd } from "./counts.ts";
import { type JobRow, resolveJob, resolveJobs, standing } from "./find.ts";
import { tell } from "./trail.ts";
import { takeUniqueKey, uniqueHolder } from "./unique.ts";

export function cancel(session: Session, params: SelectParams): Promise<SelectResult<CancelOutcome>> {
  return forEachSelected(session, params, openStates, async (job) => {
    if (isTerminal(job.state)) return "terminal";
    if (job.state !== "active") {
      await tellChildren(session, [cancelIdle(session, job, "cancel", params.reason)]);
      return "cancelled";
    }
    if (!job.cancelRequested) {
      tell(session, job, "cancel-requested", params.reason);
      session.link.write(
        sql`update escapement_jobs set cancel_requested = 1, reason = ${params.reason} where seq = ${job.seq}`,
      );
      session.changed.add(job.seq);
    }
    session.notices.cancelRequested(job.id);
    return "requested";
  });
}

export function redrive(session: Session, params: SelectParams): Promise<SelectResult<RedriveOutcome>> {
  return forEachSelected(session, params, redrivableStates, async (job) => {
    if (!isRedrivable(job.state)) return "refused";
    return redriveOne(session, job, params.reason);
  });
}

async function redriveOne(session: Session, job: JobRow, reason: string | null): Promise<RedriveOutcome> {
  if (job.uniqueKey !== null) {
    const holder = await uniqueHolder(session, job.uniqueKey);
    if (holder !== null && holder !== job.seq) return "held";
    const until = job.uniqueMs === null ? null : job.enqueuedAt + job.uniqueMs;
    takeUniqueKey(session, job.uniqueKey, job.seq, until);
  }
  const { link, now } = session;
  tell(session, job, "redriven", reason);
  const state = follow(job.state, "redrive");
  const place = standing(session, state, { ...job, crashes: 0, runAt: now }, 0);
  link.write(
    sql`update escapement_jobs set state = ${state}, ${place}, run_at = ${now}, attempt = 0, crashes = 0, reason = null,
        expire_at = null, redrives = ${fixed(risen("least", "redrives"))}
      where seq = ${job.seq}`,
  );
  session.changed.add(job.seq);
  countEnd(session, job, job.state, -1);
  session.notices.claimable(job.queue);
  if (!job.relayed) waitAgain(session, job, 0, now);
  return "redriven";
}

/** Chooses the jobs of a cancel or a redrive, then processes them one by one. */
async function forEachSelected<O extends string>(
  session: Session,
  params: SelectParams,
  states: readonly JobState[],
  act: (job: JobRow) => Promise<O>,
): Promise<SelectResult<O | "unknown">> {
  const { ids, cursor } = await choose(session, params, states);
  return { results: await actOn(session, ids, act), cursor };
}

/** Which jobs a selection covers, without locking them. */
export async function choose(
  session: Session,
  { select }: SelectParams,
  states: readonly JobState[],
): Promise<{ readonly ids: readonly string[]; readonly cursor: string | null }> {
  if ("ids" in select) return { ids: select.ids, cursor: null };
  const asked = select.filter.states;
  const filter = { ...select.filter, states: states.filter((state) => asked?.includes(state) ?? true) };
  const { limit, cursor } = select;
  const scope = { verb: "change", order: "oldest", namespace: session.ns } as const;
  const found = await search(session, fixed("j.seq, j.id"), filter, { limit: limit + 1, scope, cursor });
  const page = found.slice(0, limit);
  return { ids: page.map((row) => textOf(row[1])), cursor: nextCursor(scope, found, page) };
}

async function actOn<O extends string>(
  session: Session,
  ids: readonly string[],
  act: (job: JobRow) => Promise<O>,
): Promise<{ id: string; outcome: O | "unknown" }[]> {
  await session.lines.refresh(session.link);
  const jobs = await resolveJobs(session, [...new Set(ids)]);
  const results: { id: string; outcome: O | "unknown" }[] = [];
  for (const id of ids) {
    const known = jobs.get(id);
    // A change to an earlier one may have changed this one.
    const job = known !== undefined && session.changed.has(known.seq) ? await resolveJob(session, id) : known;
    results.push({ id, outcome: job == null ? "unknown" : await act(job) });
  }
  return results;
}
