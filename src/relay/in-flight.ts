import { announce } from "../claims/announce.ts";
import { Outbox, type Sending } from "../claims/outbox.ts";
import { type ErrorRecord, recordError } from "../errors.ts";
import type { PublishResult } from "../message/transport.ts";
import type { Outcome } from "../state.ts";
import type { ClaimedJob } from "../store/claims.ts";
import type { DueJob } from "../store/partitions.ts";
import type { Store } from "../store/store.ts";
import type { Destination, Destinations } from "./destinations.ts";
import { type Age, ageAt, DueTimer, type StoreTime } from "./pacing.ts";
import { Publisher, type PublisherParts } from "./publisher.ts";
import { verdictOf, verdictOnTakeover } from "./verdict.ts";

/**
 * One destination may have this share of the limit, however many there are: one that hangs leaves the rest to the
 * others.
 */
const leastShare = 1 / 4;

/** A job that was named and is not settled. */
export interface NamedJob {
  readonly job: ClaimedJob;
  /** Undefined when this process has no route for it. */
  readonly destination: Destination | undefined;
  /** Its route's. */
  readonly dispatchTimeoutMs: number;
  readonly age: Age;
  /**
   * When its outcome was decided, on the monotonic clock; null before. The outcome goes with the next checkpoint, and
   * makes room for what that one names: it is one write.
   */
  decidedAtMs: number | null;
  /** A checkpoint with its rollback has failed. */
  hasFailedRollback: boolean;
}

export interface InFlightParts extends Omit<PublisherParts, "onResult" | "storeNow"> {
  readonly store: Store;
  readonly owner: string;
  readonly destinations: Destinations;
  /** How many jobs may be in flight. */
  readonly limit: number;
  readonly time: StoreTime;
  random(): number;
  /** Whether a job may be published now: its destination is reachable, its queue not paused. */
  isPublishable(job: ClaimedJob, nowMs: number): boolean;
  /** There is something for the next checkpoint. */
  onSettled(): void;
}

/** How much the next checkpoint may still name. */
export interface Room {
  /** Nothing more of this age may be named. */
  isFull(age: Age): boolean;
  admits(job: DueJob, destination: Destination): boolean;
  take(job: DueJob, destination: Destination, age: Age): void;
}

/**
 * The jobs of a partition from when they are named until they are settled: held until they are due, published, and in
 * the outbox until a checkpoint has written their outcomes.
 */
export class InFlight {
  readonly #parts: InFlightParts;
  readonly #jobs = new Map<string, NamedJob>();
  readonly #untilDue: DueTimer<NamedJob>;
  readonly #publisher: Publisher;
  readonly outbox: Outbox<NamedJob>;
  #state: "open" | "ended" | "lost" = "open";

  constructor(parts: InFlightParts) {
    this.#parts = parts;
    const { clock, time, emit } = parts;
    this.#untilDue = new DueTimer({ clock, time, onDue: (jobs) => this.#publish(jobs) });
    const storeNow = (): number => time.atLeast(clock.monotonic());
    this.#publisher = new Publisher({ ...parts, storeNow, onResult: this.#published });
    this.outbox = new Outbox({
      reports: null,
      onWritten: (named, outcome, result) => {
        this.#delete(named);
        announce(emit, named.job, outcome, result, null);
      },
    });
  }

  get size(): number {
    return this.#jobs.size;
  }

  has(id: string): boolean {
    return this.#jobs.has(id);
  }

  /** The time of the oldest. */
  get oldestAtMs(): number {
    const times = this.#jobs.values().map(({ job }) => job.runAt.getTime());
    return times.reduce((least, time) => Math.min(least, time), Number.POSITIVE_INFINITY);
  }

  /** Whether there is enough time for a publish. */
  get mayPublish(): boolean {
    return this.#publisher.mayBegin;
  }

  // ── From named to published ──

  /** What an earlier owner had named is published again, except for what must not be. */
  takeOver(jobs: readonly ClaimedJob[]): void {
    for (const job of jobs) {
      const named = this.#add(job, "fresh");
      const verdict = verdictOnTakeover(job, named.destination !== undefined);
      if (verdict === null) this.#untilDue.add([named]);
      else this.#settle(named, verdict);
    }
  }

  add(jobs: readonly ClaimedJob[]): void {
    const { clock, time } = this.#parts;
    const now = time.atLeast(clock.monotonic());
    const ready: NamedJob[] = [];
    for (const job of jobs) {
      // Each token is published once, even if an answer is repeated.
      if (this.#jobs.get(job.id)?.job.token === job.token) continue;
      const named = this.#add(job, ageAt(job.runAt, now));
      if (job.cancelRequested || this.#state === "ended") this.#settle(named, { kind: "release" });
      else ready.push(named);
    }
    this.#untilDue.add(ready);
  }

  /** To be called whenever the store's time is updated. */
  publishDue(): void {
    this.#untilDue.check();
  }

  /** A job that is cancelled after it was named is not published, unless it was due already. */
  cancel(ids: ReadonlySet<string>): void {
    for (const named of this.#untilDue.remove(ids)) this.#settle(named, { kind: "release" });
  }

  /** Gives back what is not due yet. */
  releaseWaiting(): void {
    for (const named of this.#untilDue.clear()) this.#settle(named, { kind: "release" });
  }

  /** Publishes nothing more. Results of earlier publishes still count. */
  end(): void {
    if (this.#state === "open") this.#state = "ended";
    this.releaseWaiting();
  }

  /** Another process owns the jobs: their outcomes can no longer be written. */
  lose(): void {
    this.#state = "lost";
    this.#untilDue.clear();
  }

  #publish(jobs: readonly NamedJob[]): void {
    const nowMs = this.#parts.clock.monotonic();
    const { publishable = [], withheld = [] } = Object.groupBy(jobs, ({ job }) =>
      this.#parts.isPublishable(job, nowMs) ? "publishable" : "withheld",
    );
    this.#publisher.publish(publishable);
    // The queue was paused since, or the destination became unreachable.
    for (const named of withheld) this.#settle(named, { kind: "release" });
  }

  // ── From published to settled ──

  readonly #published = (named: NamedJob, result: PublishResult | "unsent"): void => {
    const { emit, random } = this.#parts;
    const { job } = named;
    if (this.#state === "lost" || this.#jobs.get(job.id) !== named) return;
    if (result === "unsent") return this.#settle(named, { kind: "release" });
    const outcome = verdictOf(job, result, random());
    if (outcome.kind === "rollback" && result.kind !== "acknowledged") {
      const ambiguous = result.kind === "ambiguous";
      const error = recordError(result.error);
      emit("dispatchRetry", { job, phase: "publish", error, retryInMs: outcome.delayMs, ambiguous });
    }
    this.#settle(named, outcome);
  };

  #settle(named: NamedJob, outcome: Outcome): void {
    named.decidedAtMs = this.#parts.clock.monotonic();
    this.outbox.add(named, outcome);
    this.#parts.onSettled();
  }

  /** A checkpoint failed: what it was to settle goes with the next one. */
  putBack(sending: Sending<NamedJob>, error: ErrorRecord, retryInMs: number): void {
    this.outbox.putBack(sending);
    for (const { held: named, outcome } of sending.entries) {
      if (outcome.kind !== "rollback" || named.hasFailedRollback) continue;
      named.hasFailedRollback = true;
      const { job } = named;
      this.#parts.emit("dispatchRetry", { job, phase: "rollback_write", error, retryInMs, ambiguous: false });
    }
  }

  /**
   * Gives up rollbacks that could not be written for as long as the route's dispatch timeout. Their jobs are still
   * named, so they are published again instead; but first the store is asked, since only its answer may have been lost.
   */
  async republishOverdue(): Promise<void> {
    const { store, owner, emit } = this.#parts;
    const overdue = this.#overdueRollbacks();
    if (overdue.length === 0 || !this.mayPublish) return;
    try {
      const stored = await store.get({ ids: overdue.map(({ job }) => job.id) });
      this.outbox.withdraw((named) => overdue.includes(named));
      const again = overdue.filter((named, index) => {
        const found = stored[index];
        const isOurs =
          found?.state === "active" && found.claimer === owner && found.token === named.job.token;
        if (!isOurs || this.#state !== "open") this.#delete(named);
        return this.#jobs.get(named.job.id) === named;
      });
      for (const named of again) Object.assign(named, { decidedAtMs: null, hasFailedRollback: false });
      this.#publisher.publish(again);
    } catch (error) {
      emit("error", { error, during: "looking for jobs whose rollback was not written" });
    }
  }

  #overdueRollbacks(): NamedJob[] {
    const nowMs = this.#parts.clock.monotonic();
    return [...this.#jobs.values()].filter(
      ({ decidedAtMs, hasFailedRollback, dispatchTimeoutMs }) =>
        hasFailedRollback && decidedAtMs !== null && nowMs >= decidedAtMs + dispatchTimeoutMs,
    );
  }

  #add(job: ClaimedJob, age: Age): NamedJob {
    const { destinations, definitions } = this.#parts;
    const destination = destinations.of(job.name);
    const { dispatchTimeoutMs = Number.POSITIVE_INFINITY } = definitions.get(job.name)?.route ?? {};
    const named = { job, destination, dispatchTimeoutMs, age, decidedAtMs: null, hasFailedRollback: false };
    this.#jobs.set(job.id, named);
    return named;
  }

  #delete(named: NamedJob): void {
    if (this.#jobs.get(named.job.id) === named) this.#jobs.delete(named.job.id);
  }

  // ── How many more ──

  /** How many one checkpoint names at most: half, so the next is in flight while the first half is published. */
  get portion(): number {
    return partOf(this.#parts.limit, 1 / 2);
  }

  /** How many more the next checkpoint may name, of whatever age and destination. */
  get left(): number {
    return Math.min(this.#parts.limit - this.#undecided().length, this.portion);
  }

  /** How many more may be named before their time: at most half wait for it, so there is room for what is due. */
  get leftAhead(): number {
    return Math.floor(this.#parts.limit / 2) - this.#untilDue.size;
  }

  /** Whether an at-most-once job is named: then others wait for the next checkpoint. */
  get hasAtMostOnce(): boolean {
    return this.#jobs.values().some(isAtMostOnce);
  }

  room(hasBacklog: boolean): Room {
    const { limit, destinations } = this.#parts;
    return roomFor(this.#undecided(), {
      limit,
      portion: this.portion,
      destinations: destinations.count,
      hasBacklog,
    });
  }

  #undecided(): NamedJob[] {
    return [...this.#jobs.values()].filter(({ decidedAtMs }) => decidedAtMs === null);
  }
}

export interface RoomParams {
  readonly limit: number;
  readonly portion: number;
  readonly destinations: number;
  readonly hasBacklog: boolean;
}

/**
 * The room for one checkpoint in addition to the jobs that are not decided. If there is work of both ages, each leaves the
 * other a quarter. At-most-once jobs go one at a time, so a crash costs at most one.
 */
export function roomFor(undecided: readonly NamedJob[], params: RoomParams): Room {
  const { limit, portion, destinations, hasBacklog } = params;
  const ofAge = (age: Age): number => undecided.filter((named) => named.age === age).length;
  const threeQuarters = partOf(limit, 3 / 4);
  const perDestination = partOf(limit, Math.max(1 / Math.max(1, destinations), leastShare));
  let left = Math.min(limit - undecided.length, portion);
  const leftOf = {
    fresh: (hasBacklog ? threeQuarters : limit) - ofAge("fresh"),
    backlog: threeQuarters - ofAge("backlog"),
  };
  const leftAtKnown = new Map<Destination, number>();
  const leftAt = (destination: Destination): number => {
    const known = leftAtKnown.get(destination);
    if (known !== undefined) return known;
    const used = undecided.filter((named) => named.destination === destination).length;
    const room = destination.breaker.limit(perDestination) - used;
    leftAtKnown.set(destination, room);
    return room;
  };
  let hasAtMostOnce = undecided.some(isAtMostOnce);
  return {
    isFull: (age) => left <= 0 || leftOf[age] <= 0,
    admits: (job, destination) =>
      leftAt(destination) > 0 && !(hasAtMostOnce && job.delivery === "at-most-once"),
    take: (job, destination, age) => {
      left -= 1;
      leftOf[age] -= 1;
      leftAtKnown.set(destination, leftAt(destination) - 1);
      if (job.delivery === "at-most-once") hasAtMostOnce = true;
    },
  };
}

function isAtMostOnce({ job }: NamedJob): boolean {
  return job.delivery === "at-most-once";
}

function partOf(limit: number, part: number): number {
  return Math.max(1, Math.floor(limit * part));
}
