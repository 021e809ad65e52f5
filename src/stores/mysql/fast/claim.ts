import { follow } from "../../../state.ts";
import type { ClaimParams, ClaimResult } from "../../../store/claims.ts";
import { instantOf } from "../../../unreadable.ts";
import { aheadOf } from "../../choose.ts";
import { risen } from "../../risen.ts";
import type { Answer, Tuple } from "../connection/link.ts";
import { fixed, join, now, type Sql, sql } from "../connection/sql.ts";
import type { WaitingLine } from "../limits/lines.ts";
import {
  claimLock,
  hiddenMs,
  isDirect,
  isDue,
  type LineRun,
  runsOf,
  type TimedLineRun,
  toRun,
} from "../limits/shelves.ts";
import { claimedColumns, seqOf, toClaimedJob } from "../rows.ts";
import type { Session } from "../session.ts";
import { go, type Part } from "./parts.ts";

/** What a claimer asks for, as far as this process knows it. */
interface Asked {
  /** Lines whose jobs can be claimed in one trip. */
  readonly open: readonly WaitingLine[];
  /** Lines that must have nothing due: jobs that run alone, and those of limited queues. */
  readonly other: readonly WaitingLine[];
}

function askedLines({ lines, queues }: Session, params: ClaimParams): Asked {
  const names = new Set(params.names.map(({ name }) => name));
  const asked =
    params.queues === null
      ? null
      : new Set(params.queues.filter(({ limit }) => limit > 0).map(({ queue }) => queue));
  const wanted = ({ queue, name }: WaitingLine): boolean =>
    names.has(name) && (asked === null || asked.has(queue)) && !queues.of(queue).paused;
  const plain = lines.plain.filter(wanted);
  return {
    open: plain.filter(({ queue }) => !queues.isLimited(queue)),
    other: [...lines.fragile.filter(wanted), ...plain.filter(({ queue }) => queues.isLimited(queue))],
  };
}

/** Claims plain jobs of the lines in which this handle expects some. */
export function claimPart(session: Session, params: ClaimParams): Part<ClaimResult> {
  const { link, remembered } = session;
  const { open, other } = askedLines(session, params);
  const asked = [...open, ...other];
  const runs = remembered.expected(new Set(open.map(({ line }) => line)));
  const limits = limitsOf(params, runs, open);
  const claimer = session.claimers.of(params.claimer);
  return {
    before: [
      sql`select sequence into @escapement_last from escapement_claimers where claimer = ${claimer} for update`,
    ],
    condition: limits === null ? fixed("false") : checkClaim(session, params, asked, runs),
    run() {
      link.write(
        sql`update escapement_claimers set sequence = ${params.sequence}, seen_at = ${now} where claimer = ${claimer} and ${go}`,
      );
      let jobs: readonly Tuple[] = [];
      let after: readonly TimedLineRun[] = [];
      const answers: Promise<Answer>[] = [];
      if (runs.length > 0 && limits !== null) {
        answers.push(
          hold(session, params, runs, limits, open).then((answer) => {
            jobs = answer.rows;
            return answer;
          }),
        );
      }
      if (asked.length > 0) {
        answers.push(
          link.query(runsOf(asked.map(({ line }) => line))).then((answer) => {
            after = answer.rows.map(toRun);
            return answer;
          }),
        );
      }
      return { answers, read: () => resultOf(session, params, jobs, after) };
    },
  };
}

/** How many jobs a claim may take, including those ahead. */
function mostOf(params: ClaimParams): number {
  return Math.max(0, params.limit) + aheadOf(params);
}

/** How many jobs each run may give; null if several runs must share the limit of a queue. */
function limitsOf(
  params: ClaimParams,
  runs: readonly LineRun[],
  lines: readonly WaitingLine[],
): ReadonlyMap<LineRun, number> | null {
  const ofQueue = new Map(params.queues?.map(({ queue, limit }) => [queue, limit]));
  const most = mostOf(params);
  const limits = new Map<LineRun, number>();
  const used = new Set<string>();
  for (const run of runs) {
    const queue = lines.find(({ line }) => line === run.line)?.queue ?? "";
    const limit = ofQueue.get(queue) ?? most;
    if (limit < most && used.has(queue)) return null;
    used.add(queue);
    limits.set(run, Math.min(limit, most));
  }
  return limits;
}

/** That nothing is in the way: a later claim, a change of queues, a new line, a lane, or an unexpected due job. */
function checkClaim(
  { ns, queues, lines }: Session,
  params: ClaimParams,
  asked: readonly WaitingLine[],
  runs: readonly LineRun[],
): Sql {
  const base = sql`@escapement_last < ${params.sequence}
    and (select config_version from escapement_namespaces where ns = ${ns}) = ${queues.version}
    and (${lines.countThem()}) = ${lines.size}
    and not exists (select 1 from escapement_hints where ns = ${ns})`;
  if (asked.length === 0) return base;
  const groups = new Map(asked.map(({ queue, name }) => [`${queue}\n${name}`, { queue, name }]));
  const gates = [...groups.values()].map(({ queue, name }) => sql`(queue = ${queue} and name = ${name})`);
  const expected = runs.map(({ line, urgency }) => sql`(line = ${line} and urgency = ${urgency})`);
  const unexpected = runs.length === 0 ? fixed("true") : sql`not (${join(expected, " or ")})`;
  return sql`${base}
    and not exists (select 1 from escapement_gates force index (escapement_gates_ready) where ns = ${ns} and (${join(gates, " or ")}))
    and not exists (select 1 from (${runsOf(asked.map(({ line }) => line))}) as runs where first_at <= ${now} and ${unexpected})`;
}

/** Takes the first jobs of the runs by their turn, and reads them. Index: escapement_jobs_line. */
function hold(
  session: Session,
  params: ClaimParams,
  runs: readonly LineRun[],
  limits: ReadonlyMap<LineRun, number>,
  open: readonly WaitingLine[],
): Promise<Answer> {
  const { link, lines, skipLocked } = session;
  const claimer = session.claimers.of(params.claimer);
  const queues = new Map(open.map(({ line, queue }) => [line, queue]));
  const activeLine = runs.map(({ line }) => sql`when ${line} then ${lines.activeOf(queues.get(line) ?? "")}`);
  const firstOf = (run: LineRun): Sql =>
    sql`select seq as chosen, urgency as turn, at as due_at, ${isDirect} as direct from escapement_jobs force index (escapement_jobs_line)
      where line = ${run.line} and urgency = ${run.urgency} and at <= if(${go}, ${now}, -1) and ${isDue}
      order by at, seq limit ${limits.get(run) ?? mostOf(params)} ${claimLock(skipLocked)}`;
  const from = [...new Set(runs.map(({ line }) => line))];
  const chosen = inTurn(params, runs.map(firstOf));
  link.write(
    sql`update (${chosen.rows}) as c straight_join escapement_jobs as j on j.seq = c.chosen
      set j.state = ${follow("waiting", "claim")}, j.line = case j.line ${join(activeLine, " ")} end, j.urgency = 0,
        j.at = ${now} + ${Math.ceil(params.leaseMs)}, j.reason = null, j.attempt = ${fixed(risen("least", "j.attempt"))}, j.token = ${fixed(risen("least", "j.token"))},
        j.claimer = ${claimer}, j.claim_sequence = ${params.sequence}, j.claimed_at = ${now}, j.ahead = ${chosen.isAhead}
      where j.line in (${from}) and ${isDue} and ${chosen.condition}`,
  );
  const active = [...new Set(from.map((line) => lines.activeOf(queues.get(line) ?? "")))];
  return link.query(
    sql`select ${claimedColumns} from escapement_jobs as j force index (escapement_jobs_line)
      where line in (${active}) and urgency = 0 and at = ${now} + ${Math.ceil(params.leaseMs)}
        and claimer = ${claimer} and claim_sequence = ${params.sequence}
      order by priority desc, run_at, seq`,
  );
}

/** The first rows of all runs by turn: which are taken ahead, and which come after one that may not be. */
function inTurn(
  params: ClaimParams,
  runs: readonly Sql[],
): { readonly rows: Sql; readonly isAhead: Sql; readonly condition: Sql } {
  const limit = Math.max(0, params.limit);
  const [single] = runs;
  const due =
    runs.length === 1 && single !== undefined
      ? single
      : sql`select * from (${join(
          runs.map((run) => sql`(${run})`),
          " union all ",
        )}) as due order by turn, due_at, chosen limit ${mostOf(params)}`;
  if (aheadOf(params) === 0) return { rows: due, isAhead: fixed("0"), condition: fixed("true") };
  return {
    rows: sql`select chosen, place, sum(place > ${limit} and direct) over (order by place) as barred
      from (select chosen, direct, row_number() over (order by turn, due_at, chosen) as place from (${due}) as first) as placed`,
    isAhead: sql`(c.place > ${limit})`,
    // If rows were not locked while reading, they are checked again.
    condition: sql`c.barred = 0 and (c.place <= ${limit} or not ${isDirect})`,
  };
}

/** @param after the current runs. */
function resultOf(
  session: Session,
  params: ClaimParams,
  rows: readonly Tuple[],
  after: readonly TimedLineRun[],
): ClaimResult {
  const { now: at, remembered } = session;
  const jobs = rows.map(toClaimedJob);
  for (const [index, job] of jobs.entries()) remembered.claimed.hold(job, seqOf(rows[index] ?? []));
  // A job that is due but was not taken despite free room is locked by others, or has expired.
  const dueAgainAt = isFull(params, jobs) ? at : at + hiddenMs;
  let nextAt = Number.POSITIVE_INFINITY;
  for (const run of after) {
    if (run.firstAt <= at + soonMs) remembered.expect(run);
    nextAt = Math.min(nextAt, run.firstAt <= at ? dueAgainAt : run.firstAt);
  }
  return {
    outcome: "claimed",
    jobs,
    now: new Date(at),
    nextAt: Number.isFinite(nextAt) ? instantOf(nextAt) : null,
    fragile: false,
  };
}

/** Whether the claimer got all that it wanted, in total or from one queue. */
function isFull(params: ClaimParams, jobs: ClaimResult["jobs"]): boolean {
  const { limit, queues } = params;
  // If it got all that it starts at once, the next job may be one that is not claimed ahead.
  if (jobs.length >= limit) return true;
  const taken = Map.groupBy(jobs, ({ queue }) => queue);
  return queues?.some((one) => one.limit > 0 && (taken.get(one.queue)?.length ?? 0) >= one.limit) ?? false;
}

/** The next claim reads a run whose first job is due this soon. */
const soonMs = 2_000;
