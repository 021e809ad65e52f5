import type { ClaimParams } from "../../store.ts";
import type { Tuple } from "./connection.ts";
import { askedQueues, type Limited, type Limits } from "./limits.ts";
import { numberOf, textOf, textOrNull } from "./rows.ts";
import type { Session } from "./session.ts";

/** A due job whose turn may come. */
export interface Candidate extends Limited {
  readonly seq: number;
  readonly priority: number;
  readonly runAt: number;
  readonly lane: string | null;
}

export interface Group {
  readonly queue: string;
  readonly name: string;
}

/** The order of claims: higher priority first, then the oldest runAt, then the order of enqueueing. */
export function byTurn(a: Candidate, b: Candidate): number {
  return b.priority - a.priority || a.runAt - b.runAt || a.seq - b.seq;
}

/** Where groups are looked for, and the condition that makes the index of that shelf usable. */
type Source = "plain" | "fragile" | "gates";
const sources: Readonly<Record<Source, string>> = {
  plain: "escapement_jobs where shelf = 'plain' and",
  fragile: "escapement_jobs where shelf = 'fragile' and",
  gates: "escapement_gates where",
};

/**
 * The queues and names that the claimer asks for and that have jobs there. It leaps through the index from one to the
 * next, so that neither a backlog of other names nor one of a paused queue costs more than a step.
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
  /** By turn, no more than were asked for. */
  readonly due: readonly Candidate[];
  /** The earliest runAt after now, or infinity. */
  readonly nextAt: number;
}

const priorityBelow = (shelf: "plain" | "fragile"): string =>
  `select priority from escapement_jobs where shelf = '${shelf}' and ns = ? and queue = ? and name = ? and priority < ?
   order by priority desc limit 1`;

const dueAt = (shelf: "plain" | "fragile"): string =>
  `select seq, run_at${shelf === "plain" ? "" : ", lane, concurrency_key, rate_key"} from escapement_jobs
   where shelf = '${shelf}' and ns = ? and queue = ? and name = ? and priority = ? and run_at <= ?
     and (expire_at is null or expire_at > ? or attempt > 0)
   order by run_at, seq limit +?`;

const laterThan = (shelf: "plain" | "fragile"): string =>
  `select run_at from escapement_jobs
   where shelf = '${shelf}' and ns = ? and queue = ? and name = ? and priority = ? and run_at > ?
   order by run_at limit 1`;

const statements = {
  plain: { below: priorityBelow("plain"), due: dueAt("plain"), later: laterThan("plain") },
  fragile: { below: priorityBelow("fragile"), due: dueAt("fragile"), later: laterThan("fragile") },
};

/**
 * Reads a group from its highest priority down, until `limit` due jobs are found.
 * Index: escapement_jobs_plain or escapement_jobs_fragile, one range of it for each priority.
 */
export function readLine(
  { connection, ns, now }: Session,
  shelf: "plain" | "fragile",
  { queue, name }: Group,
  limit: number,
): Line {
  const due: Candidate[] = [];
  let nextAt = Number.POSITIVE_INFINITY;
  const sql = statements[shelf];
  for (let priority = Number.MAX_SAFE_INTEGER; due.length < limit; ) {
    const below = connection.get(sql.below, ns, queue, name, priority);
    if (below === undefined) break;
    priority = numberOf(below["priority"]);
    const rows = connection.tuples(sql.due, ns, queue, name, priority, now, now, limit - due.length);
    for (const row of rows) due.push(toCandidate(row, queue, name, priority));
    const later = connection.get(sql.later, ns, queue, name, priority, now);
    if (later !== undefined) nextAt = Math.min(nextAt, numberOf(later["run_at"]));
  }
  return { due, nextAt };
}

/** From seq and run_at, and then lane, concurrency_key and rate_key, which a plain job does not have. */
export function toCandidate(row: Tuple, queue: string, name: string, priority: number): Candidate {
  return {
    seq: numberOf(row[0]),
    priority,
    runAt: numberOf(row[1]),
    queue,
    name,
    lane: textOrNull(row[2] ?? null),
    concurrencyKey: textOrNull(row[3] ?? null),
    rateKey: textOrNull(row[4] ?? null),
  };
}
