import { mayClaimAhead, neverAhead } from "../../../state.ts";
import type { DueJob } from "../../choose.ts";
import type { Link, Tuple } from "../connection/link.ts";
import { fixed, now, type Sql, sql } from "../connection/sql.ts";
import { deliveryOf, numberOf, textOrNull } from "../rows.ts";
import type { Session } from "../session.ts";
import type { WaitingLine } from "./lines.ts";

/** A due job whose turn may come. */
export interface Candidate extends DueJob {
  readonly version: number;
}

/** The jobs of one line with the same priority: within a run, only their time decides. */
export interface LineRun {
  readonly line: number;
  readonly urgency: number;
}

export interface TimedLineRun extends LineRun {
  readonly firstAt: number;
}

/** How soon to look again at a line whose due jobs are locked by others, or have expired and wait for the reaper. */
export const hiddenMs = 250;

/** The runs of some lines, each with its earliest time. It skips through the index from run to run, however long they are. */
export function runsOf(lines: readonly number[]): Sql {
  return sql`select line, urgency, min(at) as first_at from escapement_jobs where line in (${lines}) group by line, urgency`;
}

export function toRun(row: Tuple): TimedLineRun {
  return { line: numberOf(row[0]), urgency: numberOf(row[1]), firstAt: numberOf(row[2]) };
}

export async function readRuns(link: Link, lines: readonly WaitingLine[]): Promise<TimedLineRun[]> {
  if (lines.length === 0) return [];
  const { rows } = await link.query(runsOf(lines.map(({ line }) => line)));
  return rows.map(toRun);
}

/** The earliest time after now of some lines, or infinity. */
export async function readLater(link: Link, lines: readonly WaitingLine[]): Promise<number> {
  const { rows } = await link.query(laterIn(lines.map(({ line }) => line)));
  return rows[0]?.[0] == null ? Number.POSITIVE_INFINITY : numberOf(rows[0][0]);
}

function laterIn(lines: readonly number[]): Sql {
  return sql`select min(first_at) from (select min(at) as first_at from escapement_jobs
    where line in (${lines}) and at > ${now} group by line, urgency) as runs`;
}

/** A job that may start: due, and not expired before its first start. */
export const isDue = sql`at <= ${now} and (expire_at is null or expire_at > ${now} or attempt > 0)`;

/** Locks the rows that others have not locked. */
export function claimLock(skipLocked: boolean): Sql {
  return fixed(skipLocked ? "for update skip locked" : "");
}

/** The first due jobs of a run. Index: escapement_jobs_line, one range of it. */
export async function readRun(
  { link, skipLocked }: Session,
  run: LineRun,
  { queue, name }: WaitingLine,
  limit: number,
): Promise<Candidate[]> {
  const { rows } = await link.query(
    sql`select ${candidateColumns} from escapement_jobs force index (escapement_jobs_line)
      where line = ${run.line} and urgency = ${run.urgency} and ${isDue} order by at, seq limit ${limit} ${claimLock(skipLocked)}`,
  );
  return rows.map((row) => toCandidate(row, queue, name, -run.urgency, null));
}

const candidateColumns = fixed("seq, run_at, concurrency_key, rate_key, version, delivery, crashes, ahead");

const plain = {
  delivery: "at-least-once",
  concurrencyKey: null,
  rateKey: null,
  crashes: 0,
  ahead: false,
} as const;

/** What the jobs of a line of plain jobs can differ in, as far as `mayClaimAhead` minds it. */
const bars = [
  `delivery in (${neverAhead.map((delivery) => `'${delivery}'`).join(", ")})`,
  ...(mayClaimAhead({ ...plain, crashes: 1 }) ? [] : ["crashes > 0"]),
  ...(mayClaimAhead({ ...plain, ahead: true }) ? [] : ["ahead = 1"]),
];
export const isDirect = fixed(`(${bars.join(" or ")})`);

/** From {@link candidateColumns}. */
export function toCandidate(
  row: Tuple,
  queue: string,
  name: string,
  priority: number,
  lane: string | null,
): Candidate {
  const [concurrencyKey, rateKey] = [textOrNull(row[2]), textOrNull(row[3])];
  const delivery = deliveryOf(row[5]);
  const ahead = numberOf(row[7]) !== 0;
  return {
    seq: numberOf(row[0]),
    priority,
    runAt: numberOf(row[1]),
    queue,
    name,
    lane,
    version: numberOf(row[4]),
    concurrencyKey,
    rateKey,
    direct: !mayClaimAhead({ delivery, concurrencyKey, rateKey, crashes: numberOf(row[6]), ahead }),
  };
}

/**
 * Without SKIP LOCKED, the rows were only read: now they are locked, in the order of their seq, and those that
 * others have claimed or changed in the meantime are left out.
 */
export async function holdCandidates<C extends Candidate>(
  { link, skipLocked }: Session,
  candidates: readonly C[],
): Promise<(candidate: C) => boolean> {
  if (skipLocked || candidates.length === 0) return () => true;
  const seqs = candidates.map(({ seq }) => seq).sort((a, b) => a - b);
  const { rows } = await link.query(
    sql`select seq, version from escapement_jobs force index (primary)
      where seq in (${seqs}) and state = 'waiting' and ${isDue} order by seq for update`,
  );
  const versions = new Map(rows.map((row) => [numberOf(row[0]), numberOf(row[1])]));
  return ({ seq, version }) => versions.get(seq) === version;
}
