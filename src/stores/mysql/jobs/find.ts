import type { Delivery, JobState } from "../../../job.ts";
import { type AfterFailure, isTerminal } from "../../../state.ts";
import { laneOf } from "../../lane.ts";
import { shelfOf } from "../../shelf.ts";
import type { Tuple } from "../connection/link.ts";
import { fixed, type Sql, sql } from "../connection/sql.ts";
import { deliveryOf, numberOf, numberOrNull, stateOf, textOf, textOrNull } from "../rows.ts";
import type { Session } from "../session.ts";
import { endedUrgency } from "./kept.ts";

/** What the verbs need to know about a job to change it. */
export interface JobRow {
  readonly seq: number;
  readonly id: string;
  readonly state: JobState;
  readonly name: string;
  readonly queue: string;
  readonly delivery: Delivery;
  readonly priority: number;
  readonly runAt: number;
  readonly fireAt: number;
  readonly enqueuedAt: number;
  readonly expireAt: number | null;
  readonly attempt: number;
  readonly crashes: number;
  readonly maxCrashes: number;
  readonly version: number;
  readonly token: number;
  /** The last token that its holder settled, and that holder's number. */
  readonly settled: number;
  readonly settledBy: number;
  /** The number of its claimer, 0 for none. */
  readonly claimer: number;
  /** Claimed ahead, and not known to have started. */
  readonly ahead: boolean;
  readonly cancelRequested: boolean;
  readonly reason: string | null;
  readonly relayed: boolean;
  readonly slot: number;
  readonly lane: string | null;
  readonly concurrencyKey: string | null;
  readonly rateKey: string | null;
  readonly uniqueKey: string | null;
  readonly uniqueMs: number | null;
  readonly afterFailure: AfterFailure;
  readonly schedule: string | null;
}

const rowColumns = fixed(
  "state, stands_for, seq, id, name, queue, delivery, priority, run_at, fire_at, enqueued_at, expire_at, attempt, crashes, " +
    "max_crashes, version, token, settled, settled_by, claimer, cancel_requested, relayed, slot, concurrency_key, rate_key, " +
    "unique_key, unique_ms, after_failure, schedule, reason, ahead",
);

function toJobRow(row: Tuple): JobRow {
  const concurrencyKey = textOrNull(row[23]);
  const rateKey = textOrNull(row[24]);
  return {
    state: stateOf(row[0]),
    seq: numberOf(row[2]),
    id: textOf(row[3]),
    name: textOf(row[4]),
    queue: textOf(row[5]),
    delivery: deliveryOf(row[6]),
    priority: numberOf(row[7]),
    runAt: numberOf(row[8]),
    fireAt: numberOf(row[9]),
    enqueuedAt: numberOf(row[10]),
    expireAt: numberOrNull(row[11]),
    attempt: numberOf(row[12]),
    crashes: numberOf(row[13]),
    maxCrashes: numberOf(row[14]),
    version: numberOf(row[15]),
    token: numberOf(row[16]),
    settled: numberOf(row[17]),
    settledBy: numberOf(row[18]),
    claimer: numberOf(row[19]),
    ahead: numberOf(row[30]) !== 0,
    cancelRequested: numberOf(row[20]) !== 0,
    reason: textOrNull(row[29]),
    relayed: numberOf(row[21]) !== 0,
    slot: numberOf(row[22]),
    lane: laneOf({ concurrencyKey, rateKey }),
    concurrencyKey,
    rateKey,
    uniqueKey: textOrNull(row[25]),
    uniqueMs: numberOrNull(row[26]),
    afterFailure: textOf(row[27]) === "run" ? "run" : "cancel",
    schedule: textOrNull(row[28]),
  };
}

/** Locks the rows it reads until the transaction ends, and reads their latest state, whatever the isolation level. */
const exclusive = fixed("for update");
/** Keeps others from changing the rows it reads; other readers are not blocked. */
const shared = fixed("lock in share mode");
const unlocked = fixed("");

/** Jobs in any state, by their own id, locked in index order. */
export async function lockJobs(session: Session, ids: readonly string[]): Promise<Map<string, JobRow>> {
  const found = await readById(session, ids, exclusive);
  return new Map(found.filter(({ aliasOf }) => aliasOf === null).map(({ row }) => byId(toJobRow(row))));
}

export async function lockBySeq(session: Session, seqs: readonly number[]): Promise<Map<number, JobRow>> {
  if (seqs.length === 0) return new Map();
  const rows = await readBySeq(session, seqs, exclusive);
  return new Map(rows.map((job) => [job.seq, job]));
}

/** The jobs that ids refer to, directly or by an alias, locked; unknown ids are left out. */
export function resolveJobs(session: Session, ids: readonly string[]): Promise<Map<string, JobRow>> {
  return resolve(session, ids, exclusive);
}

/**
 * The same for parents, which must not end before their child exists. A caller's transaction may last, and every call that wants to
 * end them would wait; so it reads without locking.
 */
export function shareJobs(session: Session, ids: readonly string[]): Promise<Map<string, JobRow>> {
  return session.foreign ? lookUp(session, ids) : resolve(session, ids, shared);
}

/** The jobs that ids refer to, without locks: as committed by others, or else as this transaction wrote them. */
export async function lookUp(session: Session, ids: readonly string[]): Promise<Map<string, JobRow>> {
  const committed = await resolve(peeking(session), ids, unlocked);
  const rest = ids.filter((id) => !committed.has(id));
  if (!session.foreign || rest.length === 0) return committed;
  return new Map([...committed, ...(await resolve(session, rest, unlocked))]);
}

type Reader = Pick<Session, "ns"> & { readonly link: Pick<Session["link"], "query"> };

function peeking(session: Session): Reader {
  return { ns: session.ns, link: { query: (statement) => session.peek(statement) } };
}

export async function resolveJob(session: Session, id: string): Promise<JobRow | null> {
  return (await resolveJobs(session, [id])).get(id) ?? null;
}

async function resolve(session: Reader, ids: readonly string[], lock: Sql): Promise<Map<string, JobRow>> {
  const jobs = new Map<string, JobRow>();
  const aliases = new Map<string, number>();
  for (const { id, aliasOf, row } of await readById(session, ids, lock)) {
    if (aliasOf === null) jobs.set(id, toJobRow(row));
    else aliases.set(id, aliasOf);
  }
  if (aliases.size === 0) return jobs;
  const targets = new Map(
    (await readBySeq(session, [...aliases.values()], lock)).map((job) => [job.seq, job]),
  );
  for (const [id, seq] of aliases) {
    const job = targets.get(seq);
    if (job !== undefined) jobs.set(id, job);
  }
  return jobs;
}

interface Found {
  readonly id: string;
  readonly aliasOf: number | null;
  readonly row: Tuple;
}

async function readById({ link, ns }: Reader, ids: readonly string[], lock: Sql): Promise<Found[]> {
  if (ids.length === 0) return [];
  const { rows } = await link.query(
    sql`select ${rowColumns} from escapement_jobs force index (escapement_jobs_id) where ns = ${ns} and id in (${ids}) ${lock}`,
  );
  return rows.map((row) => ({
    id: textOf(row[3]),
    aliasOf: textOf(row[0]) === "alias" ? numberOf(row[1]) : null,
    row,
  }));
}

async function readBySeq({ link }: Reader, seqs: readonly number[], lock: Sql): Promise<JobRow[]> {
  const { rows } = await link.query(
    sql`select ${rowColumns} from escapement_jobs force index (primary) where seq in (${seqs}) ${lock}`,
  );
  return rows.map(toJobRow);
}

function byId(job: JobRow): [string, JobRow] {
  return [job.id, job];
}

/** What decides where a job waits. */
interface Standing extends Pick<JobRow, "relayed" | "crashes" | "maxCrashes" | "lane" | "queue" | "name"> {
  readonly slot: number;
  readonly priority: number;
  readonly runAt: number;
}

/** The columns line, urgency and at of a job that is waiting, blocked or terminal. */
export function standing(session: Session, state: JobState, job: Standing, endedAt: number): Sql {
  const { lines } = session;
  if (isTerminal(state)) return position(lines.common(state as "succeeded"), endedUrgency(state), endedAt);
  if (state === "blocked") return position(lines.common("blocked"), 0, job.runAt);
  const shelf = shelfOf(job);
  if (shelf === "relay") return position(lines.inSlot("relay", job.slot), 0, job.runAt);
  if (shelf === "lane") return position(lines.common("lane"), 0, job.runAt);
  return position(lines.waiting(shelf, job.queue, job.name), -job.priority, job.runAt);
}

function position(line: number, urgency: number | Sql, at: number): Sql {
  return sql`line = ${line}, urgency = ${urgency}, at = ${at}`;
}
