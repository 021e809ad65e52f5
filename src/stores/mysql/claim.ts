import { follow } from "../../state.ts";
import type { ClaimedJob, ClaimParams, ClaimResult } from "../../store/claims.ts";
import { instantOf } from "../../unreadable.ts";
import { aheadOf, byTurn, type ClaimView, choose, leavesFragile, nextOpening } from "../choose.ts";
import { laneOf } from "../lane.ts";
import { risen } from "../risen.ts";
import { fixed, join, now, sql } from "./connection/sql.ts";
import {
  type Gate,
  type Group,
  gateGroups,
  type Hint,
  nextReady,
  readHints,
  readyGates,
  takeInHints,
} from "./limits/gates.ts";
import { type Lane, readLanes, timeLane } from "./limits/lanes.ts";
import type { WaitingLine } from "./limits/lines.ts";
import { type Candidate, hiddenMs, holdCandidates, readLater, readRun, readRuns } from "./limits/shelves.ts";
import { Limits } from "./limits.ts";
import { claimedColumns, numberOf, seqOf, toClaimedJob } from "./rows.ts";
import type { Session } from "./session.ts";

/** How many jobs that must run alone are read; more than one is rare. */
const maxFragile = 100;
/** With a small limit, more lanes than that are read, so one with an urgent job is not missed in favour of one that was ready first. */
const minLanes = 20;

/** Its plain jobs are in groups of one line and priority. */
interface View extends ClaimView<Candidate> {
  readonly limits: Limits;
  readonly laneGroups: readonly Group[];
  readonly lanes: readonly Lane[];
}

/**
 * Claims whatever this claimer may run, under the lock of the namespace: only one claim at a time looks at limits and lanes. Claims
 * that involve neither take the fast path (see `fast/claim.ts`), without the lock; so the rows of plain jobs are locked, too.
 */
export async function claim(session: Session, params: ClaimParams): Promise<ClaimResult> {
  const { link, ns } = session;
  const claimer = session.claimers.of(params.claimer);
  const [{ rows }, , hints, groups] = await Promise.all([
    link.query(sql`select sequence from escapement_claimers where claimer = ${claimer} for update`),
    link.query(sql`select ns from escapement_namespaces where ns = ${ns} for update`),
    readHints(link, ns),
    gateGroups(link, ns),
    session.queues.refresh(link),
    session.lines.refresh(link),
  ]);
  const last = numberOf(rows[0]?.[0]);
  const at = new Date(session.now);
  if (params.sequence < last) return { outcome: "stale", jobs: [], now: at, nextAt: null, fragile: false };
  takeInHints(session, hints);
  const view = await look(session, params, withHinted(groups, hints));
  const again = params.sequence === last;
  const taken = again ? [] : choose(view, params, session.now);
  const held = again ? stillHeld(session, params, claimer) : takeAll(session, params, claimer, view, taken);
  const asked = nextAt(session, params, view, taken);
  // The last trip: one packet writes the choice, reads it back and commits.
  session.commit();
  const [jobs, next] = await Promise.all([held, asked]);
  if (!again) remember(session, view, taken, jobs);
  const fragile = leavesFragile(view, taken, session.now);
  return { outcome: "claimed", jobs, now: at, nextAt: next, fragile };
}

/** Writes the choice, and its effect on limits and lanes. */
function takeAll(
  session: Session,
  params: ClaimParams,
  claimer: number,
  view: View,
  taken: readonly Candidate[],
): Promise<ClaimedJob[]> {
  const held = hold(session, params, claimer, taken);
  const seqs = new Set(taken.map(({ seq }) => seq));
  for (const lane of view.lanes) timeLane(session, view.limits, lane, seqs);
  view.limits.write();
  session.link.write(
    sql`update escapement_claimers set sequence = ${params.sequence}, seen_at = ${now} where claimer = ${claimer}`,
  );
  return held;
}

/** Records whether the next claim may take the fast path. */
function remember(
  session: Session,
  view: View,
  taken: readonly Candidate[],
  jobs: readonly ClaimedJob[],
): void {
  const { remembered, queues, lines } = session;
  const limited = view.plain.some(([job]) => job !== undefined && queues.isLimited(job.queue));
  remembered.obstructed = limited || view.laneGroups.length > 0 || view.fragile.length > 0;
  for (const [first] of view.plain) {
    if (first === undefined) continue;
    remembered.expect({ line: lines.waiting("plain", first.queue, first.name), urgency: -first.priority });
  }
  for (const [index, { seq, concurrencyKey, rateKey }] of taken.entries()) {
    const job = jobs[index];
    if (job !== undefined && concurrencyKey === null && rateKey === null) remembered.claimed.hold(job, seq);
  }
}

function withHinted(groups: readonly Group[], hints: readonly Hint[]): Group[] {
  const all = new Map<string, Group>();
  for (const { queue, name } of [...groups, ...hints.filter(({ kind }) => kind === "arrived")]) {
    all.set(`${queue}\n${name}`, { queue, name });
  }
  return [...all.values()];
}

async function look(session: Session, params: ClaimParams, groups: readonly Group[]): Promise<View> {
  const { link, lines } = session;
  const limits = new Limits(session, params);
  const limit = Math.max(0, params.limit);
  const most = limit + aheadOf(params) + 1;
  const wanted = ({ queue, name }: Group): boolean => limits.runs(name) && limits.looksInto(queue);
  const [plain, fragile] = [lines.plain.filter(wanted), lines.fragile.filter(wanted)];
  const laneGroups = groups.filter(wanted);
  const concerned = new Set([...plain, ...laneGroups].map(({ queue }) => queue));
  const [runs, fragileRuns, laterAt] = await Promise.all([
    readRuns(link, plain),
    readRuns(link, fragile),
    readLater(link, [...plain, ...fragile]),
    limits.loadQueues([...concerned]),
  ]);
  const isDue = ({ firstAt }: { readonly firstAt: number }): boolean => firstAt <= session.now;
  const due = runs.filter(isDue);
  // One more than can be taken shows whether asking again would find more.
  const [candidates, alone, lanes] = await Promise.all([
    Promise.all(due.map((run) => readRun(session, run, lineIn(plain, run.line), most))),
    Promise.all(
      fragileRuns.filter(isDue).map((run) => readRun(session, run, lineIn(fragile, run.line), maxFragile)),
    ),
    findLanes(session, limits, laneGroups, limit),
  ]);
  const inLanes = lanes.flatMap(({ front }) => front);
  const [isThere] = await Promise.all([
    holdCandidates(session, [...candidates.flat(), ...alone.flat(), ...inLanes]),
    limits.loadKeys([...alone.flat(), ...inLanes]),
  ]);
  const hidden = candidates.some((run) => run.length === 0)
    ? session.now + hiddenMs
    : Number.POSITIVE_INFINITY;
  return {
    limits,
    fragile: alone.flat().filter(isThere).sort(byTurn),
    plain: candidates.map((run) => run.filter(isThere)),
    laneGroups,
    lanes: lanes.map((lane) => ({ ...lane, due: lane.due.slice(0, firstMissing(lane.due, isThere)) })),
    laterAt: Math.min(laterAt, hidden),
  };
}

function firstMissing(due: readonly Candidate[], isThere: (candidate: Candidate) => boolean): number {
  const missing = due.findIndex((candidate) => !isThere(candidate));
  return missing < 0 ? due.length : missing;
}

function lineIn(lines: readonly WaitingLine[], line: number): WaitingLine {
  const found = lines.find((one) => one.line === line);
  if (found === undefined) throw new Error(`the line ${line} was not asked for`);
  return found;
}

/** The lanes that may have a job for these groups, longest ready first. */
async function findLanes(
  session: Session,
  limits: Limits,
  groups: readonly Group[],
  limit: number,
): Promise<Lane[]> {
  const open = groups.filter(({ queue }) => limits.queueOpensAt(queue) <= session.now);
  const most = Math.max(limit, minLanes);
  const gates: Gate[][] = await Promise.all(
    open.map((group) => readyGates(session, group, most, limits.keyConcurrency(group.name))),
  );
  return readLanes(session, limits, gates.flat(), limit);
}

/** Gives the chosen jobs to the claimer. */
async function hold(
  session: Session,
  params: ClaimParams,
  claimer: number,
  chosen: readonly Candidate[],
): Promise<ClaimedJob[]> {
  if (chosen.length === 0) return [];
  const { link, ns, lines } = session;
  const seqs = chosen.map(({ seq }) => seq);
  const limit = Math.max(0, params.limit);
  // By the queue of the line that it was found in: something else may have changed the row's own.
  const activeLine = [...Map.groupBy(chosen, ({ queue }) => queue)].map(
    ([queue, jobs]) => sql`when seq in (${jobs.map(({ seq }) => seq)}) then ${lines.activeOf(queue)}`,
  );
  link.write(
    sql`update escapement_jobs set state = ${follow("waiting", "claim")}, line = case ${join(activeLine, " ")} end, urgency = 0,
        at = ${now} + ${Math.ceil(params.leaseMs)}, reason = null, attempt = ${fixed(risen("least", "attempt"))}, token = ${fixed(risen("least", "token"))},
        claimer = ${claimer}, claim_sequence = ${params.sequence}, claimed_at = ${now}, ahead = seq in (${[0, ...seqs.slice(limit)]})
      where seq in (${seqs})`,
  );
  const keyed = chosen.filter(({ concurrencyKey, rateKey }) => concurrencyKey !== null || rateKey !== null);
  if (keyed.length > 0) {
    const rows = keyed.map((job) => {
      const { seq, queue, name, priority, runAt } = job;
      return sql`(${seq}, ${ns}, 'active', ${job.lane ?? laneOf(job)}, ${-priority}, ${runAt}, ${queue}, ${name})`;
    });
    link.write(
      sql`insert into escapement_lane_jobs (job, ns, place, lane, urgency, run_at, queue, name) values ${join(rows, ", ")}
        on duplicate key update place = 'active'`,
    );
  }
  const { rows } = await link.query(
    sql`select ${claimedColumns} from escapement_jobs as j where seq in (${seqs})`,
  );
  const jobs = new Map(rows.map((row) => [seqOf(row), toClaimedJob(row)]));
  return chosen.flatMap(({ seq }) => jobs.get(seq) ?? []);
}

/** The answer to a repeated claim: what is still active under it, with lease left. */
async function stillHeld(
  { link, lines }: Session,
  { sequence }: ClaimParams,
  claimer: number,
): Promise<ClaimedJob[]> {
  const { rows } = await link.query(
    sql`select ${claimedColumns} from escapement_jobs as j force index (escapement_jobs_line)
      where line in (${lines.active}) and urgency = 0 and at > ${now} and claimer = ${claimer} and claim_sequence = ${sequence}
      order by priority desc, run_at, seq`,
  );
  return rows.map(toClaimedJob);
}

/** When the same claim may find more: now, when a job becomes due, or when a rate window ends. */
async function nextAt(
  session: Session,
  params: ClaimParams,
  view: View,
  taken: readonly Candidate[],
): Promise<Date | null> {
  if (params.limit + aheadOf(params) <= 0) return null;
  const { limits } = view;
  let earliest = nextOpening(view, params, taken);
  const ready = await Promise.all(view.laneGroups.map((group) => nextReady(session, group)));
  for (const [index, group] of view.laneGroups.entries()) {
    const readyAt = ready[index] ?? Number.POSITIVE_INFINITY;
    earliest = Math.min(earliest, Math.max(readyAt, limits.queueOpensAt(group.queue)));
  }
  return Number.isFinite(earliest) ? instantOf(earliest) : null;
}
