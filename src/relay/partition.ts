import type { AnyDefinition } from "../definition.ts";
import { isTransient, recordError } from "../errors.ts";
import type { Emit } from "../events.ts";
import type { Runtime } from "../runtime.ts";
import type { Settings } from "../settings.ts";
import type { Outcome } from "../state.ts";
import type { CheckpointResult, ClaimedJob, DueJob, PartitionGrant, PartitionRef, Store } from "../store.ts";
import { reconnectDelayMs } from "../transient.ts";
import type { PublishResult } from "../transport.ts";
import { Wakeup } from "../wakeup.ts";
import { announce } from "./announce.ts";
import { Beats } from "./beats.ts";
import { Departures } from "./departures.ts";
import type { DrainRate } from "./drain-rate.ts";
import { Flights } from "./flights.ts";
import type { Outlets } from "./outlets.ts";
import { Publisher } from "./publisher.ts";
import { type Lane, laneAt, Reader } from "./reader.ts";
import { type Settlement, Settlements } from "./settlements.ts";
import { verdictOf, verdictOnTakeover } from "./verdict.ts";

export interface PartitionParts {
  readonly store: Store;
  readonly owner: string;
  readonly settings: Settings;
  readonly runtime: Runtime;
  readonly emit: Emit;
  readonly definitions: ReadonlyMap<string, AnyDefinition>;
  readonly outlets: Outlets;
  readonly drainRate: DrainRate;
  /** How many jobs the partition may have named and not settled. */
  readonly width: number;
  isPaused(queue: string): boolean;
  /** A transport is left alone for so long; 0: no longer. */
  onClosed(ms: number): void;
}

/** How many jobs one read brings, for each that a claim of a worker would: reading takes nothing away from others. */
const readPerBatch = 5;
/** How long before their time jobs are named, so that only the publish itself is left to do then. At-most-once is named at its time. */
const aheadMs = 160;
/** A checkpoint that named nothing of what it asked for must not be repeated in a tight circle. */
const minRepeatMs = 20;

/**
 * Fires one partition for as long as it is held. One checkpoint at a time carries what became of published jobs to the store and brings back
 * the next that may be published; reading ahead and publishing go on meanwhile.
 */
export class Partition {
  readonly #parts: PartitionParts;
  readonly #grant: PartitionGrant;
  readonly #wakeup: Wakeup;
  readonly #publisher: Publisher;
  readonly reader: Reader;
  /** Named and not settled. */
  readonly #flights: Flights;
  /** Those of them that wait for their time. */
  readonly #departures: Departures;
  readonly #beats: Beats;
  readonly #settlements = new Settlements();
  /** Asked to be named, and not answered: to be asked again as it was, so that no named job is stranded. */
  #naming: readonly DueJob[] = [];
  #namingIds: ReadonlySet<string> = new Set();
  #mark: number;
  #safeUntilMs: number;
  #state: "serving" | "draining" | "over" = "serving";
  #isLost = false;
  #failures = 0;

  constructor(parts: PartitionParts, grant: PartitionGrant, safeUntilMs: number) {
    this.#parts = parts;
    this.#grant = grant;
    this.#safeUntilMs = safeUntilMs;
    this.#mark = grant.mark?.getTime() ?? Number.NEGATIVE_INFINITY;
    const { runtime, store, settings, definitions, outlets } = parts;
    this.#wakeup = new Wakeup(runtime.clock);
    this.#flights = new Flights(parts.width, outlets.count);
    this.#beats = new Beats(grant.partition, aheadMs / 2);
    this.reader = new Reader({
      store,
      partition: grant.partition,
      clock: runtime.clock,
      pollMs: settings.pollMs,
      pageSize: readPerBatch * settings.batch,
      mayGo: (job, nowMs) => this.#mayGo(job, nowMs),
      isTaken: (id) => this.#flights.has(id) || this.#namingIds.has(id),
      onRead: () => {
        this.#departures.look();
        this.#wakeup.wake();
      },
      onError: (error) => parts.emit("error", { error, during: "reading what is due on a partition" }),
    });
    this.#departures = new Departures({
      clock: runtime.clock,
      time: this.reader.time,
      onDue: (jobs) => this.#publish(jobs),
    });
    this.#publisher = new Publisher({
      settings,
      clock: runtime.clock,
      definitions,
      outlets,
      emit: parts.emit,
      timeLeftMs: () => this.#safeUntilMs - settings.leaseMs / 5 - runtime.clock.monotonic(),
      leastMs: settings.leaseMs / 5,
      storeNow: () => this.reader.now,
      onClosed: parts.onClosed,
      onResult: this.#published,
    });
  }

  get ref(): PartitionRef {
    const { partition, epoch } = this.#grant;
    return { partition, epoch };
  }

  get isServing(): boolean {
    return this.#state === "serving";
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  get inFlight(): number {
    return this.#flights.size;
  }

  /** How long the oldest job that is due and not settled has been so, by the store's clock. */
  get lagMs(): number {
    const { now } = this.reader;
    const times = [this.reader.oldestAt?.getTime() ?? now, ...this.#flights.times(), now];
    return times.reduce((most, time) => Math.max(most, now - time), 0);
  }

  /** The lease holds until then at least, on the monotonic clock. */
  renewed(safeUntilMs: number): void {
    this.#safeUntilMs = Math.max(this.#safeUntilMs, safeUntilMs);
    this.#wakeup.wake();
  }

  /** Who is asked to cancel after it was named is not published, if its time has not come. */
  cancel(ids: ReadonlySet<string>): void {
    for (const job of this.#departures.remove(ids)) this.#settle(job, { kind: "release" });
  }

  /** Another has it: nothing more is published, and nothing more could be written. */
  lose(): void {
    this.#isLost = true;
    this.end();
  }

  /** Names nothing more; over when everything that was named is settled. */
  drain(): void {
    if (this.#state === "serving") this.#state = "draining";
    this.#stay();
    this.#wakeup.wake();
  }

  /** Over now; what is named and not settled is the next owner's. */
  end(): void {
    this.#state = "over";
    this.#stay();
    this.reader.stop();
    this.#wakeup.wake();
  }

  async run(): Promise<void> {
    const reading = this.reader.run();
    this.#takeOver();
    while (!this.#isOver()) {
      if (this.#failures > 0) await this.#repair();
      const gatherMs = this.#gatherMs();
      if (gatherMs > 0) {
        await this.#wakeup.wait(gatherMs);
        continue;
      }
      const name = this.#choose();
      if (name.length === 0 && this.#settlements.count === 0) {
        await this.#wakeup.wait(this.#idleMs());
      } else if (await this.#checkpoint(name)) {
        this.#failures = 0;
      } else {
        this.#failures += 1;
        await this.#wakeup.pause(this.#retryInMs());
      }
    }
    this.end();
    // What came too late for the loop: acknowledgements, and names that were answered after the end and not published.
    for (let n = 3; n > 0 && this.#settlements.count > 0 && !this.#isLost; n--) await this.#checkpoint([]);
    await reading;
  }

  #isOver(): boolean {
    if (this.#state !== "draining") return this.#state === "over";
    return this.#flights.size === 0 && this.#settlements.count === 0 && this.#naming.length === 0;
  }

  /** What an earlier owner had named is published again, but for what must not be. */
  #takeOver(): void {
    for (const job of this.#grant.named) {
      const outlet = this.#parts.outlets.of(job.name);
      this.#flights.add(job, outlet, "fresh");
      const verdict = verdictOnTakeover(job, outlet !== undefined);
      if (verdict === null) this.#departures.add([job]);
      else this.#settle(job, verdict);
    }
  }

  // ── Naming ──

  #mayGo(job: Pick<DueJob, "name" | "queue">, nowMs: number): boolean {
    const outlet = this.#parts.outlets.of(job.name);
    return outlet?.gate.isOpen(nowMs) === true && !this.#parts.isPaused(job.queue);
  }

  /** How long to gather before the next checkpoint. The first after a rest goes at once, and so does one that is worth its trip. */
  #gatherMs(): number {
    if (this.#state !== "serving" || this.#naming.length > 0 || this.#flights.hasOnce) return 0;
    const { left, portion } = this.#flights;
    if (this.#settlements.count + Math.min(this.reader.due(this.#aheadMs), left) >= portion) return 0;
    return this.#beats.waitMs(this.#parts.runtime.clock.monotonic(), this.reader.due(0) > 0);
  }

  /** How long before their time jobs may be named now. */
  get #aheadMs(): number {
    return this.#departures.size < this.#flights.ahead ? aheadMs : 0;
  }

  /** What to name next. An answer that is owed comes first: some of it may be named already. */
  #choose(): readonly DueJob[] {
    if (this.#naming.length > 0) return this.#naming;
    if (this.#state !== "serving" || !this.#publisher.mayBegin) return [];
    const { outlets, drainRate, runtime } = this.#parts;
    const [nowMs, now] = [runtime.clock.monotonic(), this.reader.now];
    const room = this.#flights.room(this.reader.hasBacklog);
    let ahead = this.#flights.ahead - this.#departures.size;
    return this.reader.take(this.#aheadMs, (job: DueJob, lane: Lane) => {
      if (room.isFull(lane)) return "full";
      const outlet = outlets.of(job.name);
      if (outlet === undefined || !this.#mayGo(job, nowMs) || !room.admits(job, outlet)) return false;
      if (job.runAt.getTime() > now) {
        if (job.delivery === "at-most-once" || ahead <= 0) return false;
        ahead -= 1;
      }
      if (lane === "backlog" && !drainRate.take(nowMs)) return "full";
      room.take(job, outlet, lane);
      return true;
    });
  }

  async #checkpoint(name: readonly DueJob[]): Promise<boolean> {
    const { store, owner, emit } = this.#parts;
    const sent = this.#settlements.take();
    this.#beats.begin(this.#parts.runtime.clock.monotonic());
    this.#naming = name;
    this.#namingIds = new Set(name.map(({ id }) => id));
    try {
      const answer = await store.checkpoint({
        ...this.ref,
        owner,
        settled: sent.map(({ job, outcome }) => ({ id: job.id, token: job.token, outcome })),
        mark: this.#moveMark(sent),
        name: name.map(({ id, version }) => ({ id, version })),
        aheadMs,
      });
      this.#beats.end(this.#parts.runtime.clock.monotonic());
      this.#naming = [];
      this.#namingIds = new Set();
      if (answer.outcome === "stale") this.lose();
      else if (!this.#isLost) this.#written(sent, answer, name);
      return true;
    } catch (error) {
      this.#tellFailure(error, this.#settlements.putBack(sent), name);
      if (!isTransient(error) || this.#failures === 0) emit("error", { error, during: "checkpointing" });
      return false;
    }
  }

  #written(sent: readonly Settlement[], answer: CheckpointResult, asked: readonly DueJob[]): void {
    for (const [index, { job, outcome }] of sent.entries()) {
      const result = answer.finished[index];
      this.#flights.delete(job);
      if (result !== undefined) announce(this.#parts.emit, job, outcome, result);
    }
    const named: ClaimedJob[] = [];
    const { now } = this.reader;
    for (const job of answer.named) {
      // Each token is published once, also when an answer is repeated.
      if (this.#flights.isSame(job)) continue;
      this.#flights.add(job, this.#parts.outlets.of(job.name), laneAt(job.runAt, now));
      if (job.cancelRequested || this.#state === "over") this.#settle(job, { kind: "release" });
      else named.push(job);
    }
    this.#departures.add(named);
    if (this.#state !== "serving") this.#stay();
    // What was left out has changed, or is not due by the store's clock after all.
    if (answer.named.length < asked.length) {
      this.#parts.runtime.clock.after(minRepeatMs, () => this.reader.soon());
    }
  }

  // ── Publishing ──

  #publish(jobs: readonly ClaimedJob[]): void {
    const nowMs = this.#parts.runtime.clock.monotonic();
    const parted = Map.groupBy(jobs, (job) => this.#mayGo(job, nowMs));
    this.#publisher.publish(parted.get(true) ?? []);
    // Its queue was paused since, or its broker got into trouble.
    for (const job of parted.get(false) ?? []) this.#settle(job, { kind: "release" });
  }

  /** What was named and waits for its time is given back. */
  #stay(): void {
    const waiting = this.#departures.clear();
    if (!this.#isLost) for (const job of waiting) this.#settle(job, { kind: "release" });
  }

  /** A figure of progress: the time of the latest job that the broker has acknowledged. */
  #moveMark(sent: readonly Settlement[]): Date | null {
    const before = this.#mark;
    for (const { job, outcome } of sent) {
      if (outcome.kind === "succeed") this.#mark = Math.max(this.#mark, job.runAt.getTime());
    }
    return this.#mark > before ? new Date(this.#mark) : null;
  }

  #tellFailure(thrown: unknown, rollbacks: readonly Settlement[], name: readonly DueJob[]): void {
    const { emit } = this.#parts;
    const rest = { error: recordError(thrown), retryInMs: this.#retryInMs(), ambiguous: false };
    for (const { job } of rollbacks) emit("dispatchRetry", { job, phase: "rollback_write", ...rest });
    if (this.#failures > 0) return;
    for (const job of name) emit("dispatchRetry", { job, phase: "dispatched_write", ...rest });
  }

  // ── Settling ──

  readonly #published = (job: ClaimedJob, result: PublishResult | "unsent"): void => {
    const { emit, runtime } = this.#parts;
    if (this.#isLost || !this.#flights.isSame(job)) return;
    if (result === "unsent") return this.#settle(job, { kind: "release" });
    const outcome = verdictOf(job, result, runtime.random());
    if (outcome.kind === "rollback" && result.kind !== "acknowledged") {
      emit("dispatchRetry", {
        job,
        phase: "publish",
        error: recordError(result.error),
        retryInMs: outcome.delayMs,
        ambiguous: result.kind === "ambiguous",
      });
    }
    this.#settle(job, outcome);
  };

  #settle(job: ClaimedJob, outcome: Outcome): void {
    this.#flights.decide(job, true);
    this.#settlements.add(job, outcome, this.#parts.runtime.clock.monotonic());
    this.#wakeup.wake();
  }

  /**
   * A rollback that could not be written for as long as its route's dispatch timeout is given up: the job is still named, so it is published
   * again instead. The store is asked first, since the write may have been done and only its answer lost.
   */
  async #repair(): Promise<void> {
    const { definitions, runtime, store, owner, emit } = this.#parts;
    const overdue = this.#settlements.overdue(definitions, runtime.clock.monotonic());
    if (overdue.length === 0 || !this.#publisher.mayBegin) return;
    try {
      const stored = await store.get({ ids: overdue.map(({ job }) => job.id) });
      this.#settlements.remove(overdue);
      const again: ClaimedJob[] = [];
      for (const [index, { job }] of overdue.entries()) {
        const found = stored[index];
        const isOurs = found?.state === "active" && found.claimer === owner && found.token === job.token;
        if (isOurs) {
          this.#flights.decide(job, false);
          again.push(job);
        } else this.#flights.delete(job);
      }
      if (this.#state !== "over") this.#publisher.publish(again);
      else for (const job of again) this.#flights.delete(job);
    } catch (error) {
      emit("error", { error, during: "looking for jobs whose rollback was not written" });
    }
  }

  #retryInMs(): number {
    return reconnectDelayMs(this.#failures + 1, this.#parts.runtime.random());
  }

  #idleMs(): number {
    const { settings, runtime, drainRate } = this.#parts;
    const dueMs = (this.reader.nextDueMs() ?? Number.POSITIVE_INFINITY) - runtime.clock.monotonic();
    // What is near and was not named may have to wait until it is due; others come near meanwhile.
    const nameMs = dueMs > this.#aheadMs ? dueMs - this.#aheadMs : Math.min(dueMs, aheadMs / 2);
    const rateMs = this.reader.hasBacklog ? drainRate.waitMs() : 0;
    return Math.max(0, Math.min(settings.pollMs, nameMs, rateMs > 0 ? rateMs : settings.pollMs));
  }
}
