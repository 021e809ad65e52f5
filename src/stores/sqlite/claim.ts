import { instantOf } from "../../mend.ts";
import type { ClaimedJob, ClaimParams, ClaimResult } from "../../store.ts";
import { hold } from "./hold.ts";
import { findLanes, type Lane, nextReady, timeLane } from "./lanes.ts";
import { Limits } from "./limits.ts";
import {
  byTurn,
  type Candidate,
  findGroups,
  type Group,
  type Line,
  readFragile,
  readPlain,
} from "./lines.ts";
import { claimedColumns, numberOrNull, toClaimedJob } from "./rows.ts";
import type { Session } from "./session.ts";

/** How many jobs that must run alone are looked at; more than one is rare. */
const maxFragile = 100;

/** Everything that this claimer could run, read before anything is taken. */
interface View {
  readonly limits: Limits;
  readonly fragile: readonly Candidate[];
  readonly lines: readonly Line[];
  readonly laneGroups: readonly Group[];
  readonly lanes: ReadonlyMap<string, Lane>;
  /** The earliest runAt after now on the shelves of plain and fragile jobs. */
  readonly laterAt: number;
}

export function claim(session: Session, params: ClaimParams): ClaimResult {
  const now = new Date(session.now);
  const around = lookAround(session, params.claimer);
  const { last } = around;
  if (last !== null && params.sequence < last) {
    return { outcome: "stale", jobs: [], now, nextAt: null, fragile: false };
  }
  const view = look(session, params, around);
  let jobs: ClaimedJob[];
  let taken: readonly Candidate[] = [];
  if (params.sequence === last) {
    jobs = stillHeld(session, params);
  } else {
    taken = choose(session, params, view);
    jobs = hold(session, params, view.limits, taken);
    view.limits.write();
    for (const lane of view.lanes.values()) {
      timeLane(
        session,
        view.limits,
        lane,
        taken.some((job) => job.lane === lane.lane),
      );
    }
    rememberSequence(session, params, taken.length > 0);
  }
  const left = view.fragile.filter((job) => !taken.includes(job));
  const fragile = left.some((job) => view.limits.opensAt(job) <= session.now);
  return { outcome: "claimed", jobs, now, nextAt: nextAt(session, params, view, taken), fragile };
}

function look(session: Session, params: ClaimParams, around: Surroundings): View {
  const limits = new Limits(session, params, around.hasQueues);
  const limit = Math.max(0, params.limit);
  const fragileGroups = around.hasFragile ? findGroups(session, params, limits, "fragile") : [];
  const fragileLines = fragileGroups.map((group) => readFragile(session, group, maxFragile));
  // One more than can be taken tells whether asking again brings more.
  const most = limit + aheadOf(params) + 1;
  const lines = findGroups(session, params, limits, "plain").map((group) => readPlain(session, group, most));
  const laterAt = Math.min(...[...fragileLines, ...lines].map((line) => line.nextAt));
  const laneGroups = around.hasGates ? findGroups(session, params, limits, "gates") : [];
  const lanes = new Map<string, Lane>();
  for (const group of laneGroups) {
    if (limits.queueOpensAt(group.queue) <= session.now) findLanes(session, limits, group, limit, lanes);
  }
  const fragile = fragileLines.flatMap(({ due }) => due).sort(byTurn);
  return { limits, fragile, lines, laneGroups, lanes, laterAt };
}

function aheadOf({ ahead }: ClaimParams): number {
  return Math.max(0, ahead ?? 0);
}

/** The first `params.limit` of them are direct claims, the others are ahead. */
function choose({ now }: Session, params: ClaimParams, view: View): Candidate[] {
  const { limits } = view;
  if (params.alone && params.limit > 0) {
    const alone = view.fragile.find((job) => limits.opensAt(job) <= now);
    if (alone !== undefined) {
      limits.count(alone);
      return [alone];
    }
  }
  const left = new Map(params.queues?.map(({ queue, limit }) => [queue, limit]));
  const waitingLanes = new Set<string>();
  const taken: Candidate[] = [];
  const limit = Math.max(0, params.limit);
  for (const job of inTurn(view)) {
    if (taken.length >= limit + aheadOf(params)) break;
    if (job.lane !== null && waitingLanes.has(job.lane)) continue;
    const leftInQueue = left.get(job.queue) ?? Number.POSITIVE_INFINITY;
    if (leftInQueue > 0 && limits.opensAt(job) <= now) {
      if (taken.length >= limit && !mayGoAhead(view, job, taken, now)) break;
      left.set(job.queue, leftInQueue - 1);
      limits.count(job);
      taken.push(job);
    } else if (job.lane !== null) {
      waitingLanes.add(job.lane);
    }
  }
  return taken;
}

/** A lane that has a job to give may have an older one than was looked at: while there is one, nothing is taken ahead. */
function mayGoAhead(
  { limits, lanes }: View,
  job: Candidate,
  taken: readonly Candidate[],
  now: number,
): boolean {
  if (job.direct || limits.isLimited(job.queue)) return false;
  for (const { due } of lanes.values()) {
    if (due.some((other) => !taken.includes(other) && limits.opensAt(other) <= now)) return false;
  }
  return true;
}

function inTurn(view: View): readonly Candidate[] {
  const single = view.lines[0];
  // The most common case of all needs no sorting.
  if (single !== undefined && view.lines.length === 1 && view.lanes.size === 0) return single.due;
  const lanes = [...view.lanes.values()];
  return [...view.lines.flatMap(({ due }) => due), ...lanes.flatMap(({ due }) => due)].sort(byTurn);
}

/** The answer to the repeated claim: what is still active under it, with lease left. */
function stillHeld(session: Session, params: ClaimParams): ClaimedJob[] {
  const rows = session.connection.tuples(
    `select ${claimedColumns} from escapement_all_jobs where seq in (
       select seq from escapement_active
       where ns = ? and relayed = 0 and claimer = ? and claim_sequence = ? and lease_boot = ? and lease_until > ?)
     order by priority desc, run_at, seq`,
    session.ns,
    params.claimer,
    params.sequence,
    session.boot,
    session.monotonic,
  );
  return rows.map(toClaimedJob);
}

/** What most claims do not meet, asked in one. */
interface Surroundings {
  /** The last sequence of the claimer. */
  readonly last: number | null;
  readonly hasQueues: boolean;
  readonly hasFragile: boolean;
  readonly hasGates: boolean;
}

const surroundings = `select
  (select value from escapement_figures where ns = ? and kind = 'claimer' and key = ? and name = '') as sequence,
  exists (select 1 from escapement_queues where ns = ?) as queues,
  exists (select 1 from escapement_jobs where shelf = 'fragile' and ns = ?) as fragile,
  exists (select 1 from escapement_gates where ns = ?) as gates`;

function lookAround({ connection, ns, emptyClaims }: Session, claimer: string): Surroundings {
  const row = connection.get(surroundings, ns, claimer, ns, ns, ns) ?? {};
  const written = numberOrNull(row["sequence"]);
  const empty = emptyClaims.get(claimer) ?? null;
  return {
    last: written === null || empty === null ? (written ?? empty) : Math.max(written, empty),
    hasQueues: row["queues"] === 1,
    hasFragile: row["fragile"] === 1,
    hasGates: row["gates"] === 1,
  };
}

/**
 * A claim that took nothing is remembered by this handle alone, through which its claimer would repeat it: an idle node that
 * asks every second must not make the disk write every second.
 */
function rememberSequence(session: Session, { claimer, sequence }: ClaimParams, tookSome: boolean): void {
  const { connection, ns, now, emptyClaims } = session;
  if (!tookSome) {
    emptyClaims.set(claimer, sequence);
    return;
  }
  emptyClaims.delete(claimer);
  connection.run(
    `insert into escapement_figures (ns, kind, key, name, value, seen_at) values (?, 'claimer', ?, '', ?, ?)
     on conflict do update set value = excluded.value, seen_at = excluded.seen_at`,
    ns,
    claimer,
    sequence,
    now,
  );
}

/** When the same question may bring more: now, when a job becomes due, or when a rate window ends. */
function nextAt(session: Session, params: ClaimParams, view: View, taken: readonly Candidate[]): Date | null {
  if (params.limit + aheadOf(params) <= 0) return null;
  const { limits } = view;
  const gone = new Set(taken);
  let earliest = view.laterAt;
  const consider = (job: Candidate): void => {
    if (!gone.has(job)) earliest = Math.min(earliest, limits.opensAt(job));
  };
  if (params.alone) for (const job of view.fragile) consider(job);
  // What stops one plain job of a group stops them all, so the last one speaks for those that are left.
  for (const { due } of view.lines) {
    const last = due.at(-1);
    if (last !== undefined) consider(last);
  }
  for (const group of view.laneGroups) {
    const readyAt = nextReady(session, group);
    earliest = Math.min(earliest, Math.max(readyAt, limits.queueOpensAt(group.queue)));
  }
  return Number.isFinite(earliest) ? instantOf(earliest) : null;
}
