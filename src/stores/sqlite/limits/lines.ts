import type { ClaimParams } from "../../../store/claims.ts";
import type { DueJob } from "../../choose.ts";
import { askedQueues } from "../../limits.ts";
import type { Tuple } from "../connection/connection.ts";
import type { Limits } from "../limits.ts";
import { numberOf, textOf, textOrNull } from "../rows.ts";
import type { Session } from "../session.ts";

/** A due job whose turn may come. */
export interface Candidate extends DueJob {
  /** It is in escapement_plain. */
  readonly isPlain: boolean;
  /** It has a row in escapement_untried. */
  readonly untried: boolean;
}

export interface Group {
  readonly queue: string;
  readonly name: string;
}

/** Where groups are searched, and the condition that makes the index of that shelf usable. */
type Source = "plain" | "fragile" | "gates";
const sources: Readonly<Record<Source, string>> = {
  plain: "escapement_plain where",
  fragile: "escapement_jobs where shelf = 'fragile' and",
  gates: "escapement_gates where",
};

/**
 * The queues and names that the claimer asks for and that have jobs there. It skips through the index from one to the
 * next, so neither a backlog of other names nor one of a paused queue costs more than a step.
 */
export function findGroups(session: Session, params: ClaimParams, limits: Limits, source: Source): Group[] {
  const names = params.names.map(({ name }) => name).sort(byBytes);
  const queues = params.queues === null ? everyQueue(session, source) : askedQueues(params.queues);
  const groups: Group[] = [];
  for (const queue of queues) {
    if (!limits.looksInto(queue)) continue;
    for (const name of namesIn(session, source, queue, names)) groups.push({ queue, name });
  }
  return groups;
}

function* everyQueue({ connection, ns }: Session, source: Source): Generator<string> {
  const next = `select queue from ${sources[source]} ns = ? and queue > ? order by queue limit 1`;
  for (let queue = ""; ; ) {
    const row = connection.get(next, ns, queue);
    if (row === undefined) return;
    queue = textOf(row["queue"]);
    yield queue;
  }
}

function* namesIn(
  { connection, ns }: Session,
  source: Source,
  queue: string,
  names: readonly string[],
): Generator<string> {
  const next = `select name from ${sources[source]} ns = ? and queue = ? and name >= ? order by name limit 1`;
  for (let index = 0; index < names.length; ) {
    const row = connection.get(next, ns, queue, names[index] ?? "");
    if (row === undefined) return;
    const found = textOf(row["name"]);
    while (index < names.length && byBytes(names[index] ?? "", found) < 0) index += 1;
    if (names[index] !== found) continue;
    yield found;
    index += 1;
  }
}

/** The order of SQLite's indexes, which differs from JavaScript's beyond the basic plane. */
function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** What one group on one shelf offers. */
export interface Line {
  /** By turn, at most as many as asked for. */
  readonly due: readonly Candidate[];
  /** The earliest runAt after now, or infinity. */
  readonly nextAt: number;
}

const unexpired = "(expire_at is null or expire_at > ?)";

interface LineStatements {
  readonly below: string;
  readonly due: string;
  readonly later: string;
}

const plain: LineStatements = {
  below: `select priority from escapement_plain where ns = ? and queue = ? and name = ? and priority < ?
    order by priority desc limit 1`,
  due: `select seq, run_at, direct, untried from escapement_plain
    where ns = ? and queue = ? and name = ? and priority = ? and run_at <= ? and ${unexpired}
    order by run_at, seq limit +?`,
  later: `select run_at from escapement_plain where ns = ? and queue = ? and name = ? and priority = ? and run_at > ?
    order by run_at limit 1`,
};

const fragile: LineStatements = {
  below: `select priority from escapement_jobs where shelf = 'fragile' and ns = ? and queue = ? and name = ? and priority < ?
    order by priority desc limit 1`,
  due: `select seq, run_at, lane, concurrency_key, rate_key from escapement_jobs
    where shelf = 'fragile' and ns = ? and queue = ? and name = ? and priority = ? and run_at <= ?
      and (expire_at is null or expire_at > ? or attempt > 0)
    order by run_at, seq limit +?`,
  later: `select run_at from escapement_jobs where shelf = 'fragile' and ns = ? and queue = ? and name = ? and priority = ?
      and run_at > ?
    order by run_at limit 1`,
};

/** The first of a group of plain jobs, whether due or not. */
const first = `select seq, run_at, direct, untried, priority from escapement_plain
  where ns = ? and queue = ? and name = ? and ${unexpired} order by priority desc, run_at, seq limit +?`;

/** What a group of plain jobs offers. Index: the primary key of escapement_plain, one range of it for each priority. */
export function readPlain(session: Session, group: Group, limit: number): Line {
  const { connection, ns, now } = session;
  const { queue, name } = group;
  const rows = connection.tuples(first, ns, queue, name, now, limit);
  // If all of them are due, as in a backlog, there is nothing to skip.
  if (rows.every((row) => numberOf(row[1]) <= now)) {
    const due = rows.map((row) => toPlain(row, group, numberOf(row[4])));
    return { due, nextAt: Number.POSITIVE_INFINITY };
  }
  return readPriorities(session, plain, group, limit, toPlain);
}

/** What a group of fragile jobs offers. Index: escapement_jobs_fragile, one range of it for each priority. */
export function readFragile(session: Session, group: Group, limit: number): Line {
  return readPriorities(session, fragile, group, limit, toShelved);
}

/** Reads a group from its highest priority down, until `limit` due jobs are found. */
function readPriorities(
  { connection, ns, now }: Session,
  sql: LineStatements,
  group: Group,
  limit: number,
  toCandidate: (row: Tuple, group: Group, priority: number) => Candidate,
): Line {
  const { queue, name } = group;
  const due: Candidate[] = [];
  let nextAt = Number.POSITIVE_INFINITY;
  for (let priority = Number.MAX_SAFE_INTEGER; due.length < limit; ) {
    const below = connection.get(sql.below, ns, queue, name, priority);
    if (below === undefined) break;
    priority = numberOf(below["priority"]);
    const rows = connection.tuples(sql.due, ns, queue, name, priority, now, now, limit - due.length);
    for (const row of rows) due.push(toCandidate(row, group, priority));
    const later = connection.get(sql.later, ns, queue, name, priority, now);
    if (later !== undefined) nextAt = Math.min(nextAt, numberOf(later["run_at"]));
  }
  return { due, nextAt };
}

function toPlain(row: Tuple, { queue, name }: Group, priority: number): Candidate {
  return {
    seq: numberOf(row[0]),
    priority,
    runAt: numberOf(row[1]),
    queue,
    name,
    lane: null,
    concurrencyKey: null,
    rateKey: null,
    isPlain: true,
    direct: row[2] !== 0,
    untried: row[3] !== 0,
  };
}

/** A job with a shelf in escapement_jobs, from seq, run_at, lane, concurrency_key and rate_key. */
export function toShelved(row: Tuple, { queue, name }: Group, priority: number): Candidate {
  return {
    seq: numberOf(row[0]),
    priority,
    runAt: numberOf(row[1]),
    queue,
    name,
    lane: textOrNull(row[2] ?? null),
    concurrencyKey: textOrNull(row[3] ?? null),
    rateKey: textOrNull(row[4] ?? null),
    isPlain: false,
    direct: true,
    untried: true,
  };
}
