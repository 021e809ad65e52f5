import { endedStates, isTerminal } from "../../../state.ts";
import type { RemoveOutcome, SelectParams, SelectResult } from "../../../store/jobs.ts";
import { fixed, now, sql } from "../connection/sql.ts";
import { forget, leaveDebounceKeys } from "../prune.ts";
import { numberOf, textOrNull } from "../rows.ts";
import type { Session } from "../session.ts";
import { type JobRow, lookUp, resolveJobs } from "./find.ts";
import { choose } from "./select.ts";

export async function remove(session: Session, params: SelectParams): Promise<SelectResult<RemoveOutcome>> {
  const { ids, cursor } = await choose(session, params, endedStates);
  const distinct = [...new Set(ids)];
  await leaveKeys(session, [...(await lookUp(session, distinct)).values()]);
  const jobs = await resolveJobs(session, distinct);
  const held = await holders(session, [...jobs.values()]);
  const gone = new Set<number>();
  const results = ids.map((id) => {
    const job = jobs.get(id);
    const outcome = job === undefined || gone.has(job.seq) ? "unknown" : outcomeOf(job, held);
    if (job !== undefined && outcome === "deleted") gone.add(job.seq);
    return { id, outcome };
  });
  if (gone.size > 0) forget(session, [...gone]);
  return { results, cursor };
}

function outcomeOf({ seq, state }: JobRow, held: ReadonlySet<number>): RemoveOutcome {
  if (!isTerminal(state)) return "refused";
  return held.has(seq) ? "held" : "deleted";
}

/** Before the jobs are locked, in the order of an enqueue: the key first. */
async function leaveKeys(session: Session, jobs: readonly JobRow[]): Promise<void> {
  const seqs = jobs.filter(({ state }) => isTerminal(state)).map(({ seq }) => seq);
  if (seqs.length === 0) return;
  const { rows } = await session.link.query(
    sql`select job, debounce_key from escapement_debounce_keys where job in (${seqs})`,
  );
  const listed = rows.map((row) => ({ seq: numberOf(row[0]), key: textOrNull(row[1]) }));
  await leaveDebounceKeys(session, listed, fixed("for update"));
}

/** Those that hold their unique key for a time. */
async function holders({ link }: Session, jobs: readonly JobRow[]): Promise<ReadonlySet<number>> {
  if (jobs.length === 0) return new Set();
  const { rows } = await link.query(
    sql`select job from escapement_unique_keys where job in (${jobs.map(({ seq }) => seq)}) and until > ${now}`,
  );
  return new Set(rows.map((row) => numberOf(row[0])));
}
