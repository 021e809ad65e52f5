import { follow, mayClaimAhead } from "../../state.ts";
import type { ClaimName, ClaimParams, ClaimResult } from "../../store.ts";
import { countClaim, opensAt } from "./limits.ts";
import { byTurn, type Group, laneOf } from "./lines.ts";
import { type Row, toClaimed } from "./row.ts";
import type { Moment, Space } from "./space.ts";

export function claim(space: Space, params: ClaimParams, moment: Moment): ClaimResult {
  const last = space.claimers.get(params.claimer);
  const now = new Date(moment.now);
  if (last !== undefined && params.sequence < last.sequence) {
    return { outcome: "stale", jobs: [], now, nextAt: null, fragile: false };
  }
  const ask = new Ask(space, params, moment.now);
  let rows: readonly Row[];
  if (params.sequence === last?.sequence) {
    rows = last.claims.flatMap(({ id, token }) => stillHeld(space, params.claimer, id, token, moment));
  } else {
    rows = take(space, ask, moment);
    const claims = rows.map(({ id, token }) => ({ id, token }));
    space.claimers.set(params.claimer, { sequence: params.sequence, claims });
  }
  return {
    outcome: "claimed",
    jobs: rows.map(toClaimed),
    now,
    nextAt: nextAt(ask),
    fragile: ask.fragileJob() !== undefined,
  };
}

function stillHeld(space: Space, claimer: string, id: string, token: number, moment: Moment): Row[] {
  const row = space.jobs.get(id);
  if (row?.state !== "active" || row.token !== token || row.claimer !== claimer) return [];
  return row.leaseUntil !== null && row.leaseUntil > moment.monotonic ? [row] : [];
}

function take(space: Space, ask: Ask, moment: Moment): Row[] {
  const { params } = ask;
  const fragile = params.alone && params.limit > 0 ? ask.fragileJob() : undefined;
  if (fragile !== undefined) {
    hold(space, fragile, ask, moment, false);
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
      hold(space, row, ask, moment, isAhead);
      taken.push(row);
    } else if (leftInQueue <= 0 || laneOf(row) === null) {
      // What stops a plain job stops everything else of its name in its queue.
      groups.delete(group);
    }
  }
  return taken;
}

function hold(space: Space, row: Row, ask: Ask, moment: Moment, ahead: boolean): void {
  countClaim(space, row, ask.names.get(row.name), moment.now);
  space.write(row, {
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

/** When the same question may bring more: now, when a job is due that runs, or the end of a rate window. */
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

/** One claimer's question: which jobs it could run, in which order, and when they may go. */
class Ask {
  readonly params: ClaimParams;
  readonly names: ReadonlyMap<string, ClaimName>;
  readonly #space: Space;
  readonly #now: number;
  readonly #queues: ReadonlySet<string> | null;

  constructor(space: Space, params: ClaimParams, now: number) {
    this.params = params;
    this.names = new Map(params.names.map((name) => [name.name, name]));
    this.#space = space;
    this.#now = now;
    this.#queues =
      params.queues === null
        ? null
        : new Set(params.queues.filter(({ limit }) => limit > 0).map(({ queue }) => queue));
    space.indexes.lines.bringTo(now);
  }

  /** Those whose name and queue are asked for and whose queue is not paused. */
  groups(): Group[] {
    const groups = [...this.names.keys()].flatMap((name) => [...this.#space.indexes.lines.groups(name)]);
    return groups.filter(
      ({ queue }) => this.#asksFor(queue) && this.#space.queues.get(queue)?.paused !== true,
    );
  }

  /** The job whose turn comes next behind the place, or the first of all. */
  next(groups: Iterable<Group>, place: Row | null): { row: Row; group: Group } | undefined {
    let best: { row: Row; group: Group } | undefined;
    for (const group of groups) {
      const row = place === null ? group.front.first() : group.front.after(place);
      if (row !== undefined && (best === undefined || byTurn(row, best.row) < 0)) best = { row, group };
    }
    return best;
  }

  fragileJobs(): Row[] {
    return [...this.#space.indexes.lines.fragile.upward(null)].filter((row) => this.#asksFor(row.queue));
  }

  fragileJob(): Row | undefined {
    return this.fragileJobs().find((row) => this.mayGo(row));
  }

  mayGo(row: Row): boolean {
    return this.opensAt(row) <= this.#now;
  }

  mayGoAhead(row: Row): boolean {
    const queue = this.#space.queues.get(row.queue);
    const isLimited = queue !== undefined && (queue.concurrency !== null || queue.rate !== null);
    return !isLimited && mayClaimAhead(row);
  }

  /** Infinity where time alone opens nothing. */
  opensAt(row: Row): number {
    return opensAt(this.#space, row, this.names.get(row.name), this.#now) ?? Number.POSITIVE_INFINITY;
  }

  #asksFor(queue: string): boolean {
    return this.#queues === null || this.#queues.has(queue);
  }
}
