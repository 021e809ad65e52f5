import { safetyMarginMs } from "../claims/lease-margin.ts";
import type { Sending } from "../claims/outbox.ts";
import type { AnyDefinition } from "../definition.ts";
import { isTransient, recordError } from "../errors.ts";
import type { Emit } from "../events.ts";
import { RepeatDelay } from "../runtime/repeat-delay.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { reconnectDelayMs } from "../runtime/transient.ts";
import { Wakeup } from "../runtime/wakeup.ts";
import type { Settings } from "../settings.ts";
import type { DueJob, PartitionGrant, PartitionRef } from "../store/partitions.ts";
import type { Store } from "../store/store.ts";
import type { Destinations } from "./destinations.ts";
import { InFlight, type NamedJob } from "./in-flight.ts";
import { type Age, aheadMs, type BacklogRate, CheckpointPace } from "./pacing.ts";
import { Reader } from "./reader.ts";

export interface PartitionParts {
  readonly store: Store;
  readonly owner: string;
  readonly settings: Settings;
  readonly runtime: Runtime;
  readonly emit: Emit;
  readonly definitions: ReadonlyMap<string, AnyDefinition>;
  readonly destinations: Destinations;
  readonly backlogRate: BacklogRate;
  /** How many jobs may be named and not settled. */
  readonly limit: number;
  isPaused(queue: string): boolean;
  /** A destination is skipped for this long; 0: it is reachable again. */
  onCircuit(openMs: number): void;
}

/** How many jobs one read brings for each that a worker would claim at once: reading takes nothing away from others. */
const readPerBatch = 5;

/**
 * Publishes the jobs of one partition for as long as this process owns it. One checkpoint at a time settles published
 * jobs in the store and names the next that may be published; reading ahead and publishing continue meanwhile.
 */
export class Partition {
  readonly #parts: PartitionParts;
  readonly #grant: PartitionGrant;
  readonly #wakeup: Wakeup;
  /** For checkpoints that name less than they ask for. */
  readonly #repeatDelay = new RepeatDelay();
  readonly #pace: CheckpointPace;
  readonly reader: Reader;
  readonly #inFlight: InFlight;
  /** A naming without an answer: sent again unchanged, so no named job is stranded. */
  #unanswered: ReadonlyMap<string, DueJob> = new Map();
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
    const { runtime, settings, emit } = parts;
    const { clock } = runtime;
    const isPublishable = this.#isPublishable;
    this.#wakeup = new Wakeup(clock);
    this.#pace = new CheckpointPace(grant.partition);
    this.reader = new Reader({
      ...parts,
      clock,
      isPublishable,
      partition: grant.partition,
      pollMs: settings.pollMs,
      pageSize: readPerBatch * settings.batch,
      isNamed: (id) => this.#inFlight.has(id) || this.#unanswered.has(id),
      onRead: () => {
        this.#inFlight.publishDue();
        this.#wakeup.wake();
      },
      onError: (error) => emit("error", { error, during: "reading what is due on a partition" }),
    });
    this.#inFlight = new InFlight({
      ...parts,
      clock,
      isPublishable,
      time: this.reader.time,
      random: () => runtime.random(),
      timeLeftMs: () => this.#safeUntilMs - safetyMarginMs(settings.leaseMs) - clock.monotonic(),
      onSettled: () => this.#wakeup.wake(),
    });
  }

  // ── From outside ──

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
    return this.#inFlight.size;
  }

  /** How overdue the oldest job is that is due and not settled, by the store's clock. */
  get lagMs(): number {
    const { now, oldestAt } = this.reader;
    return Math.max(0, now - this.#inFlight.oldestAtMs, oldestAt === null ? 0 : now - oldestAt.getTime());
  }

  /** The lease holds at least until then, on the monotonic clock. */
  renewed(safeUntilMs: number): void {
    this.#safeUntilMs = Math.max(this.#safeUntilMs, safeUntilMs);
    this.#wakeup.wake();
  }

  cancel(ids: ReadonlySet<string>): void {
    this.#inFlight.cancel(ids);
  }

  /** Names nothing more; over when everything that was named is settled. */
  drain(): void {
    if (this.#state === "serving") this.#state = "draining";
    this.#inFlight.releaseWaiting();
    this.#wakeup.wake();
  }

  /** Over now; the next owner takes over what is named and not settled. */
  end(): void {
    this.#state = "over";
    this.#inFlight.end();
    this.reader.stop();
    this.#wakeup.wake();
  }

  /** Another process owns it: nothing more is published, and nothing more could be written. */
  lose(): void {
    this.#isLost = true;
    this.#inFlight.lose();
    this.end();
  }

  // ── The loop ──

  async run(): Promise<void> {
    const reading = this.reader.run();
    this.#inFlight.takeOver(this.#grant.named);
    while (!this.#isOver()) {
      if (this.#failures > 0) await this.#inFlight.republishOverdue();
      const waitMs = this.#untilCheckpointMs();
      if (waitMs > 0) {
        await this.#wakeup.wait(waitMs);
        continue;
      }
      const jobs = this.#chooseJobs();
      if (jobs.length === 0 && this.#inFlight.outbox.waiting === 0) {
        await this.#wakeup.wait(this.#idleMs());
      } else if (await this.#checkpoint(jobs)) {
        this.#failures = 0;
      } else {
        this.#failures += 1;
        await this.#wakeup.pause(this.#retryInMs());
      }
    }
    this.end();
    const { outbox } = this.#inFlight;
    // Outcomes that arrived after the loop ended: acknowledgements, and jobs that were named after the end and not published.
    for (let n = 3; n > 0 && outbox.waiting > 0 && !this.#isLost; n--) await this.#checkpoint([]);
    await reading;
  }

  #isOver(): boolean {
    if (this.#state !== "draining") return this.#state === "over";
    return this.#inFlight.size === 0 && this.#inFlight.outbox.waiting === 0 && this.#unanswered.size === 0;
  }

  /** The first checkpoint after a rest goes at once, and so does one that is large enough to be worth its trip. */
  #untilCheckpointMs(): number {
    const { left, portion, outbox, hasAtMostOnce } = this.#inFlight;
    if (this.#state !== "serving" || this.#unanswered.size > 0 || hasAtMostOnce) return 0;
    if (outbox.waiting + Math.min(this.reader.dueWithin(this.#aheadMs), left) >= portion) return 0;
    return this.#pace.waitMs(this.#parts.runtime.clock.monotonic(), this.reader.dueWithin(0) > 0);
  }

  /** What to name next. Jobs whose naming was not answered come first: some of them may be named already. */
  #chooseJobs(): readonly DueJob[] {
    if (this.#unanswered.size > 0) return [...this.#unanswered.values()];
    if (this.#state !== "serving" || !this.#inFlight.mayPublish) return [];
    const { destinations, backlogRate, runtime } = this.#parts;
    const [nowMs, now] = [runtime.clock.monotonic(), this.reader.now];
    const room = this.#inFlight.room(this.reader.hasBacklog);
    let { leftAhead } = this.#inFlight;
    return this.reader.take(this.#aheadMs, (job: DueJob, age: Age) => {
      if (room.isFull(age)) return "full";
      const destination = destinations.of(job.name);
      if (destination === undefined || !this.#isPublishable(job, nowMs) || !room.admits(job, destination))
        return false;
      if (job.runAt.getTime() > now) {
        // An at-most-once job is named when it is due: a crash between naming and publishing would cost it.
        if (job.delivery === "at-most-once" || leftAhead <= 0) return false;
        leftAhead -= 1;
      }
      if (age === "backlog" && !backlogRate.take(nowMs)) return "full";
      room.take(job, destination, age);
      return true;
    });
  }

  readonly #isPublishable = (job: Pick<DueJob, "name" | "queue">, nowMs: number): boolean => {
    const breaker = this.#parts.destinations.of(job.name)?.breaker;
    return breaker !== undefined && !breaker.isOpen(nowMs) && !this.#parts.isPaused(job.queue);
  };

  /** How long before their time jobs may be named now. */
  get #aheadMs(): number {
    return this.#inFlight.leftAhead > 0 ? aheadMs : 0;
  }

  #idleMs(): number {
    const { settings, runtime, backlogRate } = this.#parts;
    const dueMs = (this.reader.nextDueAtMs ?? Number.POSITIVE_INFINITY) - runtime.clock.monotonic();
    // A job that is nearly due and was not named may have to wait until it is due; others become nearly due meanwhile.
    const nameMs = dueMs > this.#aheadMs ? dueMs - this.#aheadMs : Math.min(dueMs, aheadMs / 2);
    const rateMs = this.reader.hasBacklog ? backlogRate.waitMs() : 0;
    return Math.max(0, Math.min(settings.pollMs, nameMs, rateMs > 0 ? rateMs : settings.pollMs));
  }

  // ── The checkpoint: settles and names in one write ──

  async #checkpoint(jobs: readonly DueJob[]): Promise<boolean> {
    const { store, owner, runtime, settings } = this.#parts;
    const { outbox } = this.#inFlight;
    const sending = outbox.take();
    this.#unanswered = new Map(jobs.map((job) => [job.id, job]));
    this.#pace.begin(runtime.clock.monotonic());
    try {
      const answer = await store.checkpoint({
        ...this.ref,
        owner,
        settled: sending.finishes,
        mark: this.#advanceMark(sending),
        name: jobs.map(({ id, version }) => ({ id, version })),
        aheadMs,
      });
      this.#pace.end(runtime.clock.monotonic());
      this.#unanswered = new Map();
      if (answer.outcome === "stale") this.lose();
      if (this.#isLost) return true;
      outbox.written(sending, answer.finished);
      this.#inFlight.add(answer.named);
      if (this.#state !== "serving") this.#inFlight.releaseWaiting();
      // What was left out has changed, or is not due by the store's clock after all.
      if (answer.named.length > 0) this.#repeatDelay.reset();
      if (answer.named.length < jobs.length)
        runtime.clock.after(this.#repeatDelay.nextMs(settings.pollMs), () => this.reader.readSoon());
      return true;
    } catch (error) {
      this.#failed(error, sending, jobs);
      return false;
    }
  }

  /** A progress figure: the time of the latest job that a broker has acknowledged. */
  #advanceMark({ entries }: Sending<NamedJob>): Date | null {
    const before = this.#mark;
    for (const { held, outcome } of entries) {
      if (outcome.kind === "succeed") this.#mark = Math.max(this.#mark, held.job.runAt.getTime());
    }
    return this.#mark > before ? new Date(this.#mark) : null;
  }

  /** Everything is sent again as it was. Jobs are reported once, not for every failure in a row. */
  #failed(thrown: unknown, sending: Sending<NamedJob>, jobs: readonly DueJob[]): void {
    const { emit } = this.#parts;
    const [error, retryInMs] = [recordError(thrown), this.#retryInMs()];
    this.#inFlight.putBack(sending, error, retryInMs);
    const isFirst = this.#failures === 0;
    for (const job of isFirst ? jobs : [])
      emit("dispatchRetry", { job, phase: "dispatched_write", error, retryInMs, ambiguous: false });
    if (isFirst || !isTransient(thrown)) emit("error", { error: thrown, during: "checkpointing" });
  }

  #retryInMs(): number {
    return reconnectDelayMs(this.#failures + 1, this.#parts.runtime.random());
  }
}
