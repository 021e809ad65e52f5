import type { ClaimedJob, ClaimParams, ClaimResult } from "../../store/claims.ts";
import { instantOf } from "../../unreadable.ts";
import { aheadOf, byTurn, type ClaimView, choose, leavesFragile, nextOpening } from "../choose.ts";
import { hold } from "./jobs/hold.ts";
import { findLanes, type Lane, nextReady, timeLane } from "./limits/lanes.ts";
import { type Candidate, findGroups, type Group, readFragile, readPlain } from "./limits/lines.ts";
import { Limits } from "./limits.ts";
import { claimedColumns, numberOrNull, toClaimedJob } from "./rows.ts";
import type { Session } from "./session.ts";

/** How many jobs that must run alone are read; more than one is rare. */
const maxFragile = 100;

interface View extends ClaimView<Candidate> {
  readonly limits: Limits;
  readonly laneGroups: readonly Group[];
  readonly lanes: readonly Lane[];
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
    taken = choose(view, params, session.now);
    jobs = hold(session, params, view.limits, taken);
    view.limits.write();
    for (const lane of view.lanes) {
      timeLane(
        session,
        view.limits,
        lane,
        taken.some((job) => job.lane === lane.lane),
      );
    }
    rememberSequence(session, params, taken.length > 0);
  }
  const fragile = leavesFragile(view, taken, session.now);
  return { outcome: "claimed", jobs, now, nextAt: nextAt(session, params, view, taken), fragile };
}

function look(session: Session, params: ClaimParams, around: Surroundings): View {
  const limits = new Limits(session, params, around.hasQueues);
  const limit = Math.max(0, params.limit);
  const fragileGroups = around.hasFragile ? findGroups(session, params, limits, "fragile") : [];
  const fragileLines = fragileGroups.map((group) => readFragile(session, group, maxFragile));
  // One more than can be taken shows whether asking again would find more.
  const most = limit + aheadOf(params) + 1;
  const lines = findGroups(session, params, limits, "plain").map((group) => readPlain(session, group, most));
  const laterAt = Math.min(...[...fragileLines, ...lines].map((line) => line.nextAt));
  const laneGroups = around.hasGates ? findGroups(session, params, limits, "gates") : [];
  const lanes = new Map<string, Lane>();
  for (const group of laneGroups) {
    if (limits.queueOpensAt(group.queue) <= session.now) findLanes(session, limits, group, limit, lanes);
  }
  const fragile = fragileLines.flatMap(({ due }) => due).sort(byTurn);
  const plain = lines.map(({ due }) => due);
  return { limits, fragile, plain, laneGroups, lanes: [...lanes.values()], laterAt };
}

/** The answer to a repeated claim: what is still active under it, with lease left. */
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

/** What most claims do not have to deal with, in one query. */
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
 * A claim that took nothing is remembered only by this handle, through which its claimer would repeat it: an idle node that
 * asks every second must not cause a disk write every second.
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

/** When the same claim may find more: now, when a job becomes due, or when a rate window ends. */
function nextAt(session: Session, params: ClaimParams, view: View, taken: readonly Candidate[]): Date | null {
  if (params.limit + aheadOf(params) <= 0) return null;
  const { limits } = view;
  let earliest = nextOpening(view, params, taken);
  for (const group of view.laneGroups) {
    const readyAt = nextReady(session, group);
    earliest = Math.min(earliest, Math.max(readyAt, limits.queueOpensAt(group.queue)));
  }
  return Number.isFinite(earliest) ? instantOf(earliest) : null;
}
