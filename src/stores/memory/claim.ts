import { follow, mayClaimAhead } from "../../state.ts";
import type { ClaimName, ClaimParams, ClaimResult } from "../../store/claims.ts";
import { laneOf } from "../lane.ts";
import { askedQueues, isLimited, unlimited } from "../limits.ts";
import type { Data } from "./data/data.ts";
import { byTurn, type Group } from "./data/lines.ts";
import { countClaim, opensAt } from "./limits.ts";
import { type Row, toClaimed } from "./rows.ts";
import type { Moment, Session } from "./session.ts";

export function claim(session: Session, params: ClaimParams): ClaimResult {
  const { data } = session;
  const last = data.claimers.get(params.claimer);
  const now = new Date(session.now);
  if (last !== undefined && params.sequence < last.sequence) {
    return { outcome: "stale", jobs: [], now, nextAt: null, fragile: false };
  }
  const ask = new Ask(data, params, session.now);
  let rows: readonly Row[];
  if (params.sequence === last?.sequence) {
    rows = last.claims.flatMap(({ id, token }) => stillHeld(data, params.claimer, id, token, session));
  } else {
    rows = take(data, ask, session);
    const claims = rows.map(({ id, token }) => ({ id, token }));
    data.claimers.set(params.claimer, { sequence: params.sequence, claims });
  }
  return {
    outcome: "claimed",
    jobs: rows.map(toClaimed),
    now,
    nextAt: nextAt(ask),
    fragile: ask.fragileJob() !== undefined,
  };
}

function stillHeld(data: Data, claimer: string, id: string, token: number, moment: Moment): Row[] {
  const row = data.jobs.get(id);
  if (row?.state !== "active" || row.token !== token || row.claimer !== claimer) return [];
  return row.leaseUntil !== null && row.leaseUntil > moment.monotonic ? [row] : [];
}

function take(data: Data, ask: Ask, moment: Moment): Row[] {
  const { params } = ask;
  const fragile = params.alone && params.limit > 0 ? ask.fragileJob() : undefined;
  if (fragile !== undefined) {
    hold(data, fragile, ask, moment, false);
    return [fragile];
  }
  const taken: Row[] = [];
  const left = new Map(params.queues?.map(({ queue, limit }) => [queue, limit]));
  const groups = new Set(ask.groups());
  let place: Row | null = null;
  while (taken.length < params.limit + (params.ahead ?? 0)) {
    const next = ask.next(groups, place);
    if (next === undefined) break;
    const { row, group } = next;
    place = row;
    const leftInQueue = left.get(row.queue) ?? Number.POSITIVE_INFINITY;
    if (leftInQueue > 0 && ask.mayGo(row)) {
      const isAhead = taken.length >= params.limit;
      if (isAhead && !ask.mayGoAhead(row)) break;
      left.set(row.queue, leftInQueue - 1);
      hold(data, row, ask, moment, isAhead);
      taken.push(row);
    } else if (leftInQueue <= 0 || laneOf(row) === null) {
      // What stops a plain job stops all others of its name in its queue.
      groups.delete(group);
    }
  }
  return taken;
}

function hold(data: Data, row: Row, ask: Ask, moment: Moment, ahead: boolean): void {
  countClaim(data, row, ask.names.get(row.name), moment.now);
  data.write(row, {
    state: follow(row.state, "claim"),
    reason: null,
    token: row.token + 1,
    attempt: row.attempt + 1,
    claimer: ask.params.claimer,
    claimedAt: moment.now,
    leaseUntil: moment.monotonic + ask.params.leaseMs,
    ahead,
  });
}

/** When the same claim may find more: now, when a job becomes due that it can run, or at the end of a rate window. */
function nextAt(ask: Ask): Date | null {
  let earliest = Number.POSITIVE_INFINITY;
  if (ask.params.limit + (ask.params.ahead ?? 0) <= 0) return null;
  if (ask.params.alone) {
    for (const row of ask.fragileJobs()) earliest = Math.min(earliest, ask.opensAt(row));
  }
  for (const group of ask.groups()) {
    earliest = Math.min(earliest, group.later.first()?.runAt ?? Number.POSITIVE_INFINITY);
    for (const row of group.front.upward(null)) {
      earliest = Math.min(earliest, ask.opensAt(row));
      if (laneOf(row) === null) break;
    }
  }
  return Number.isFinite(earliest) ? new Date(earliest) : null;
}

/** One claimer's request: which jobs it could run, in which order, and when they may go. */
class Ask {
  readonly params: ClaimParams;
  readonly names: ReadonlyMap<string, ClaimName>;
  readonly #data: Data;
  readonly #now: number;
  readonly #queues: ReadonlySet<string> | null;

  constructor(data: Data, params: ClaimParams, now: number) {
    this.params = params;
    this.names = new Map(params.names.map((name) => [name.name, name]));
    this.#data = data;
    this.#now = now;
    this.#queues = params.queues === null ? null : new Set(askedQueues(params.queues));
    data.indexes.lines.bringTo(now);
  }

  /** Those whose name and queue it asks for and whose queue is not paused. */
  groups(): Group[] {
    const groups = [...this.names.keys()].flatMap((name) => [...this.#data.indexes.lines.groups(name)]);
    return groups.filter(
      ({ queue }) => this.#asksFor(queue) && this.#data.queues.get(queue)?.paused !== true,
    );
  }

  /** The job whose turn comes next after the place, or the first of all. */
  next(groups: Iterable<Group>, place: Row | null): { row: Row; group: Group } | undefined {
    let best: { row: Row; group: Group } | undefined;
    for (const group of groups) {
      const row = place === null ? group.front.first() : group.front.after(place);
      if (row !== undefined && (best === undefined || byTurn(row, best.row) < 0)) best = { row, group };
    }
    return best;
  }

  fragileJobs(): Row[] {
    return [...this.#data.indexes.lines.fragile.upward(null)].filter((row) => this.#asksFor(row.queue));
  }

  fragileJob(): Row | undefined {
    return this.fragileJobs().find((row) => this.mayGo(row));
  }

  mayGo(row: Row): boolean {
    return this.opensAt(row) <= this.#now;
  }

  mayGoAhead(row: Row): boolean {
    return !isLimited(this.#data.queues.get(row.queue) ?? unlimited) && mayClaimAhead(row);
  }

  /** Infinity if time alone opens nothing. */
  opensAt(row: Row): number {
    return opensAt(this.#data, row, this.names.get(row.name), this.#now) ?? Number.POSITIVE_INFINITY;
  }

  #asksFor(queue: string): boolean {
    return this.#queues === null || this.#queues.has(queue);
  }
}
