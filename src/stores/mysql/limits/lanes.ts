import { keyOfLane } from "../../lane.ts";
import { now, sql } from "../connection/sql.ts";
import type { Limits } from "../limits.ts";
import { numberOf, numberOrNull, textOf } from "../rows.ts";
import type { Session } from "../session.ts";
import { type Gate, openChanged, removeGate, setGate } from "./gates.ts";
import { type Candidate, claimLock, isDue, toCandidate } from "./shelves.ts";

export interface LaneJob extends Candidate {
  readonly expiresAt: number;
}

interface TimedGate extends Gate {
  /** The earliest time after now behind it. */
  readonly laterAt: number;
  /** How many due jobs wait behind it, including expired ones and those that others are changing right now. */
  readonly waiting: number;
}

/** How soon to look again at a lane whose jobs are locked by others, or have expired and wait for the reaper. */
const hiddenMs = 250;

/** A lane whose gate was ready, with the due jobs at its front. */
export interface Lane {
  readonly lane: string;
  /** The gates through which it was found; each needs a new time. */
  readonly gates: readonly TimedGate[];
  readonly front: readonly LaneJob[];
  /** Whether there may be more due jobs behind the front. */
  readonly more: boolean;
  /** The front, up to the first job that is not for this claimer: the lane waits behind that one. */
  readonly due: readonly Candidate[];
}

/** Reads the lanes behind gates. */
export async function readLanes(
  session: Session,
  limits: Limits,
  gates: readonly Gate[],
  limit: number,
): Promise<Lane[]> {
  const byLane = Map.groupBy(gates, ({ lane }) => lane);
  if (byLane.size === 0) return [];
  const lanes = [...byLane.keys()];
  const { link, ns } = session;
  const [{ rows: runs }] = await Promise.all([
    link.query(
      sql`select lane, urgency, min(run_at) from escapement_lane_jobs
        where ns = ${ns} and place = 'waiting' and lane in (${lanes}) group by lane, urgency`,
    ),
    limits.loadActive(lanes.filter((lane) => keyOfLane(lane) !== null)),
  ]);
  const due = runs
    .map((row) => ({ lane: textOf(row[0]), urgency: numberOf(row[1]), firstAt: numberOf(row[2]) }))
    .filter(({ firstAt }) => firstAt <= session.now);
  const runsByLane = Map.groupBy(due, ({ lane }) => lane);
  return Promise.all(
    [...byLane].map(([lane, own]) =>
      readLane(
        session,
        limits,
        own,
        (runsByLane.get(lane) ?? []).map(({ urgency }) => urgency),
        limit,
      ),
    ),
  );
}

async function readLane(
  session: Session,
  limits: Limits,
  gates: readonly Gate[],
  urgencies: readonly number[],
  limit: number,
): Promise<Lane> {
  const lane = gates[0]?.lane ?? "";
  const key = keyOfLane(lane);
  const rooms = gates.map(({ name }) => (key === null ? limit : limits.keyRoom(key, name)));
  // One more than can go shows which job is first afterwards.
  const most = Math.max(1, Math.min(limit, Math.max(...rooms))) + 1;
  const [timed, ...runs] = await Promise.all([
    Promise.all(gates.map((gate) => timeBehind(session, gate, most))),
    ...urgencies.toSorted((a, b) => a - b).map((urgency) => readRun(session, lane, urgency, most)),
  ]);
  const all = runs.flat();
  const front = all.slice(0, most);
  const foreign = front.findIndex(({ queue, name }) => !limits.runs(name) || !limits.looksInto(queue));
  return {
    lane,
    gates: timed,
    front,
    more: all.length >= most,
    due: foreign < 0 ? front : front.slice(0, foreign),
  };
}

/** The due jobs of one priority at the front of a lane, whatever their queues and names. */
async function readRun(
  { link, ns, skipLocked }: Session,
  lane: string,
  urgency: number,
  limit: number,
): Promise<LaneJob[]> {
  const { rows } = await link.query(
    sql`select j.seq, j.run_at, j.concurrency_key, j.rate_key, j.version, j.delivery, j.crashes, j.ahead,
        j.queue, j.name, if(j.attempt > 0, null, j.expire_at)
      from escapement_lane_jobs as l force index (escapement_lane_jobs_lane) straight_join escapement_jobs as j on j.seq = l.job
      where l.ns = ${ns} and l.place = 'waiting' and l.lane = ${lane} and l.urgency = ${urgency} and l.run_at <= ${now} and ${isDue}
      order by l.run_at, l.job limit ${limit} ${claimLock(skipLocked)}`,
  );
  return rows.map((row) => ({
    ...toCandidate(row, textOf(row[8]), textOf(row[9]), -urgency, lane),
    expiresAt: numberOrNull(row[10]) ?? Number.POSITIVE_INFINITY,
  }));
}

/** Index: escapement_lane_jobs_gate. */
async function timeBehind({ link, ns }: Session, gate: Gate, most: number): Promise<TimedGate> {
  const behind = sql`escapement_lane_jobs force index (escapement_lane_jobs_gate)
    where ns = ${ns} and lane = ${gate.lane} and queue = ${gate.queue} and name = ${gate.name} and place = 'waiting'`;
  const { rows } = await link.query(
    sql`select (select run_at from ${behind} and run_at > ${now} order by run_at limit 1),
      (select count(*) from (select 1 from ${behind} and run_at <= ${now} limit ${most}) as due)`,
  );
  const laterAt = numberOrNull(rows[0]?.[0] ?? null) ?? Number.POSITIVE_INFINITY;
  return { ...gate, laterAt, waiting: numberOf(rows[0]?.[1]) };
}

/** Sets for each gate that was looked at when looking again may find a job, now that the claim has taken its jobs. */
export function timeLane(
  session: Session,
  limits: Limits,
  { lane, gates, front, more }: Lane,
  taken: ReadonlySet<number>,
): void {
  // Gates of other queues and names may have waited for the job that was taken.
  if (front.some(({ seq }) => taken.has(seq))) openChanged(session, [lane]);
  const head = front.find(({ seq }) => !taken.has(seq));
  for (const gate of gates) {
    if (head !== undefined) timeGate(session, limits, gate, head);
    else if (more) setGate(session, gate, session.now, null);
    else timeEmpty(session, gate, front);
  }
}

/** Everything that was read from the lane was taken. */
function timeEmpty(session: Session, gate: TimedGate, front: readonly LaneJob[]): void {
  const seen = front.filter(({ queue, name }) => queue === gate.queue && name === gate.name).length;
  const hiddenUntil = gate.waiting > seen ? session.now + hiddenMs : Number.POSITIVE_INFINITY;
  const readyAt = Math.min(gate.laterAt, hiddenUntil);
  if (Number.isFinite(readyAt)) setGate(session, gate, readyAt, null);
  else removeGate(session, gate);
}

function timeGate(session: Session, limits: Limits, gate: TimedGate, head: LaneJob): void {
  const own = head.queue === gate.queue && head.name === gate.name;
  const opensAt = own ? limits.keysOpenAt(head) : Number.POSITIVE_INFINITY;
  if (opensAt <= session.now) return setGate(session, gate, session.now, null);
  if (own && head.concurrencyKey !== null && limits.keyRoom(head.concurrencyKey, head.name) <= 0) {
    return setGate(session, gate, null, limits.keyConcurrency(head.name));
  }
  // When a job with a higher priority becomes due, or the first one expires, another job is first.
  const readyAt = Math.min(opensAt, gate.laterAt, head.expiresAt);
  setGate(session, gate, Number.isFinite(readyAt) ? readyAt : null, null);
}
