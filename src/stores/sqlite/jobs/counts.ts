import type { EndedState } from "../../../state.ts";
import type { CountRow } from "../../../store/questions.ts";
import { byState, type KeptCount, type KeptKind } from "../../kept-counts.ts";
import { addedUp } from "../../risen.ts";
import { numberOf, textOf } from "../rows.ts";
import type { Session } from "../session.ts";

const addUp = `on conflict do update set value = ${addedUp("min", "value", "excluded.value")}`;
const addFigure = `insert into escapement_figures (ns, kind, key, name, value) values (?, ?, ?, ?, ?) ${addUp}`;

/** Keeps count of jobs that end in this transaction, or are redriven. */
export function countEnded(
  { connection, ns }: Session,
  { queue, name }: { readonly queue: string; readonly name: string },
  state: EndedState,
  jobs: number,
): void {
  connection.run(addFigure, ns, state, queue, name, jobs);
}

/** Jobs up to this seq are counted in `all`. A later job has a higher one: numbers rise, and there is one writer at a time. */
const countedUpTo =
  "coalesce((select value from escapement_figures where ns = ? and kind = 'counted' and key = '' and name = ''), 0)";

const chosen = "(select value from json_each(?))";
const forgetEnded = `insert into escapement_figures (ns, kind, key, name, value)
  select job.ns, ended.state, job.queue, job.name, -count(*) from escapement_ended as ended cross join escapement_jobs as job on job.seq = ended.seq
  where ended.seq in ${chosen} group by 1, 2, 3, 4 ${addUp}`;
const forgetCounted = `insert into escapement_figures (ns, kind, key, name, value)
  select ns, 'all', queue, name, -count(*) from escapement_jobs where seq in ${chosen} and seq <= ${countedUpTo}
  group by 1, 2, 3, 4 ${addUp}`;

/** Before ended jobs are forgotten: a JSON list of seq. A queue and name without jobs needs no row. */
export function countForgotten({ connection, ns }: Session, seqs: string): void {
  connection.run(forgetEnded, seqs);
  connection.run(forgetCounted, seqs, ns);
  connection.run("delete from escapement_figures where ns = ? and value = 0 and kind <> 'claimer'", ns);
}

/** How many seq numbers one round of counting covers. */
const countAtOnce = 50_000;
/** How many jobs may be left for readers to count. */
const maxUncounted = 5_000;

const jobsBetween = "escapement_jobs where +ns = ? and seq > ? and seq <= ?";
const countNew = `insert into escapement_figures (ns, kind, key, name, value)
  select ns, 'all', queue, name, count(*) from ${jobsBetween} group by 1, 2, 3, 4 ${addUp}`;
const moveCounted = `insert into escapement_figures (ns, kind, key, name, value) values (?, 'counted', '', '', ?)
  on conflict do update set value = excluded.value`;

/** Whether enough jobs came since the last time that {@link countOn} should be called. */
export function isBehind({ connection, ns }: Session): boolean {
  const row = connection.get(
    `select coalesce((select max(seq) from escapement_jobs), 0) - ${countedUpTo} as behind`,
    ns,
  );
  return numberOf(row?.["behind"]) > maxUncounted;
}

/** Counts jobs that were added since the last time, up to a limit. Returns whether more are left than readers should count. */
export function countOn(session: Session): boolean {
  if (!isBehind(session)) return false;
  const { connection, ns } = session;
  const from = numberOf(connection.get(`select ${countedUpTo} as counted`, ns)?.["counted"]);
  const last = numberOf(
    connection.get("select coalesce(max(seq), 0) as last from escapement_jobs")?.["last"],
  );
  const to = Math.min(last, from + countAtOnce);
  connection.run(countNew, ns, from, to);
  connection.run(moveCounted, ns, to);
  return isBehind(session);
}

/** Active jobs have their own table, and blocked ones an index: both are counted on demand, and so are the latest jobs. */
const keptCounts = `select kind, key as queue, name, value as jobs from escapement_figures where ns = ? and kind not in ('claimer', 'counted')
  union all select 'all', queue, name, count(*) from escapement_jobs where +ns = ? and seq > ${countedUpTo} group by 2, 3
  union all select 'active', queue, name, count(*) from escapement_active where ns = ? group by 2, 3
  union all select 'blocked', queue, name, count(*) from escapement_jobs indexed by escapement_jobs_blocked where ns = ? and blocked = 1 group by 2, 3`;

/** How many jobs there are of each queue, name and state, without reading all of them. */
export function readCounts({ connection, ns }: Session): Required<CountRow>[] {
  const kept = connection.all(keptCounts, ns, ns, ns, ns, ns).map(
    (row): KeptCount => ({
      queue: textOf(row["queue"]),
      name: textOf(row["name"]),
      kind: kindOf(row["kind"]),
      jobs: numberOf(row["jobs"]),
    }),
  );
  return byState(kept);
}

const kinds = ["all", "active", "blocked", "succeeded", "dead", "lost", "cancelled"] as const satisfies (
  | KeptKind
  | "active"
  | "blocked"
)[];

function kindOf(value: unknown): KeptCount["kind"] {
  return kinds.find((kind) => kind === value) ?? "dead";
}
