import { keyOfLane } from "../../lane.ts";
import type { Connection } from "../connection/connection.ts";
import type { Limits } from "../limits.ts";
import { numberOf, numberOrNull, textOf } from "../rows.ts";
import type { Session } from "../session.ts";
import { closeSaturated, type Gate, openChanged, removeGate, timeGate } from "./gates.ts";
import { type Candidate, type Group, toShelved } from "./lines.ts";

/** A lane whose gate was ready, with the jobs at its front. */
export interface Lane {
  readonly lane: string;
  /** The gates through which it was found; each needs a new time. */
  readonly gates: Gate[];
  readonly due: readonly Candidate[];
}

/** With a small limit, more lanes than that are read, so one with an urgent job is not missed in favour of one that was ready first. */
const minLanes = 20;

/**
 * The lanes that may have a job for this group, longest ready first; and closed ones whose limit was lower than
 * this claimer's. Index: escapement_gates_ready.
 */
export function findLanes(
  session: Session,
  limits: Limits,
  group: Group,
  limit: number,
  found: Map<string, Lane>,
): void {
  const { connection, ns, now } = session;
  const { queue, name } = group;
  const ready = connection.all(
    `select lane from escapement_gates where ns = ? and queue = ? and name = ? and ready_at <= ?
     order by ready_at limit +?`,
    ns,
    queue,
    name,
    now,
    Math.max(limit, minLanes),
  );
  const widened = connection.all(
    `select lane from escapement_gates where ns = ? and queue = ? and name = ? and ready_at is null
     and concurrency_limit < ? limit +?`,
    ns,
    queue,
    name,
    Math.min(limits.keyConcurrency(name), Number.MAX_SAFE_INTEGER),
    limit,
  );
  for (const row of [...ready, ...widened]) {
    const lane = textOf(row["lane"]);
    const gate = { lane, queue, name };
    const known = found.get(lane);
    if (known !== undefined) known.gates.push(gate);
    else found.set(lane, { lane, gates: [gate], due: readLane(session, limits, gate, limit) });
  }
}

const priorityBelow = `select priority from escapement_jobs
  where shelf = 'lane' and ns = ? and lane = ? and priority < ? order by priority desc limit 1`;

const dueInLane = `select seq, run_at, lane, concurrency_key, rate_key, queue, name, expire_at, attempt from escapement_jobs
  where shelf = 'lane' and ns = ? and lane = ? and priority = ? and run_at <= ?
    and (expire_at is null or expire_at > ? or attempt > 0)
  order by run_at, seq limit +?`;

interface LaneJob extends Candidate {
  readonly expiresAt: number;
}

/** The first due jobs of a lane, whatever their queues and names. Index: escapement_jobs_lane. */
function firstDue({ connection, ns, now }: Session, lane: string, limit: number): LaneJob[] {
  const due: LaneJob[] = [];
  for (let priority = Number.MAX_SAFE_INTEGER; due.length < limit; ) {
    const below = connection.get(priorityBelow, ns, lane, priority);
    if (below === undefined) break;
    priority = numberOf(below["priority"]);
    for (const row of connection.tuples(dueInLane, ns, lane, priority, now, now, limit - due.length)) {
      const expireAt = numberOf(row[8]) > 0 ? null : numberOrNull(row[7]);
      due.push({
        ...toShelved(row, { queue: textOf(row[5]), name: textOf(row[6]) }, priority),
        expiresAt: expireAt ?? Number.POSITIVE_INFINITY,
      });
    }
  }
  return due;
}

/** The due jobs from the front of the lane, up to the first that is not for this claimer: the lane waits behind that one. */
function readLane(session: Session, limits: Limits, gate: Gate, limit: number): Candidate[] {
  const key = keyOfLane(gate.lane);
  const room = key === null ? limit : Math.max(1, Math.min(limit, limits.keyRoom(key, gate.name)));
  let due = firstDue(session, gate.lane, room + 1);
  // Another name in the same lane may have a higher limit.
  const next = due[room];
  if (next !== undefined && next.name !== gate.name) due = firstDue(session, gate.lane, limit);
  const foreign = due.findIndex(({ queue, name }) => !limits.runs(name) || !limits.looksInto(queue));
  return foreign < 0 ? due : due.slice(0, foreign);
}

/** Sets for each gate that was looked at when looking again may find a job, now that the claim has taken its jobs. */
export function timeLane(session: Session, limits: Limits, { lane, gates }: Lane, changed: boolean): void {
  // Gates of other queues and names may have waited for the job that was taken.
  if (changed) openChanged(session, lane);
  const head = firstDue(session, lane, 1)[0];
  for (const gate of gates) {
    const laterAt = nextBehind(session.connection, session, gate);
    if (head === undefined) {
      if (Number.isFinite(laterAt)) timeGate(session, gate, laterAt);
      else removeGate(session, gate);
    } else {
      timeBehind(session, limits, gate, head, laterAt);
    }
  }
}

function timeBehind(session: Session, limits: Limits, gate: Gate, head: LaneJob, laterAt: number): void {
  const own = head.queue === gate.queue && head.name === gate.name;
  const opensAt = own ? limits.keysOpenAt(head) : Number.POSITIVE_INFINITY;
  if (opensAt <= session.now) return timeGate(session, gate, session.now);
  if (own && head.concurrencyKey !== null && limits.keyRoom(head.concurrencyKey, head.name) <= 0) {
    return closeSaturated(session, gate, limits.keyConcurrency(head.name));
  }
  // When a job with a higher priority becomes due, or the first one expires, another job is first.
  const readyAt = Math.min(opensAt, laterAt, head.expiresAt);
  timeGate(session, gate, Number.isFinite(readyAt) ? readyAt : null);
}

/** The earliest runAt after now behind a gate, or infinity. Index: escapement_jobs_gate. */
function nextBehind(connection: Connection, { ns, now }: Session, gate: Gate): number {
  const row = connection.get(
    `select run_at from escapement_jobs
     where shelf = 'lane' and ns = ? and lane = ? and queue = ? and name = ? and run_at > ? order by run_at limit 1`,
    ns,
    gate.lane,
    gate.queue,
    gate.name,
    now,
  );
  return row === undefined ? Number.POSITIVE_INFINITY : numberOf(row["run_at"]);
}

/** When the next gate of the group is ready: at or before now for a ready one, infinity if time alone opens none. */
export function nextReady({ connection, ns }: Session, { queue, name }: Group): number {
  const row = connection.get(
    `select ready_at from escapement_gates where ns = ? and queue = ? and name = ? and ready_at > -1e15
     order by ready_at limit 1`,
    ns,
    queue,
    name,
  );
  return row === undefined ? Number.POSITIVE_INFINITY : numberOf(row["ready_at"]);
}
