import { systemClock } from "../clock.ts";
import type { AnyDefinition } from "../definition.ts";
import type { JobsForHandlers } from "../enqueue.ts";
import { recordError } from "../errors.ts";
import type { Emit } from "../events.ts";
import { Snooze } from "../handler.ts";
import type { Logger } from "../log.ts";
import type { Runtime } from "../runtime.ts";
import type { Settings } from "../settings.ts";
import type { Outcome } from "../state.ts";
import type { ClaimedJob, ClaimRef, FinishResult, Notice, Store } from "../store.ts";
import { announce, warnNotKept } from "./announce.ts";
import { cancelledAmong } from "./cancels.ts";
import { claimNames } from "./claim-names.ts";
import { Claimer, type ClaimerParts } from "./claimer.ts";
import { type Heartbeat, loopHeartbeat, threadHeartbeat } from "./heartbeat.ts";
import { asRenewal, Held } from "./held.ts";
import { safetyMarginMs, startingMarginMs } from "./lease-margin.ts";
import { Outbox } from "./outbox.ts";
import { abandoned, decideOutcome, type Ending, released } from "./outcome.ts";
import type { Renewal } from "./renewer.ts";
import { Reporter } from "./reporter.ts";
import { type Run, type RunnerParts, runJob } from "./runner.ts";
import { Threads } from "./threads.ts";
import { UnreadableJobs } from "./unreadable.ts";

export interface WorkerParts {
  readonly store: Store;
  /** The node's id. */
  readonly claimer: string;
  readonly definitions: ReadonlyMap<string, AnyDefinition>;
  readonly queues: ClaimerParts["queues"];
  readonly settings: Settings;
  readonly runtime: Runtime;
  readonly jobs: JobsForHandlers;
  readonly emit: Emit;
  readonly log: Logger;
}

/** How long handlers have to settle after their signal fired at the end of a shutdown. */
const shutdownGraceMs = 1_000;

/**
 * Runs jobs: the claimer brings them, the runner runs them, the heartbeat keeps them, the outbox writes what became of them.
 * This is where the four meet.
 */
export class Worker {
  readonly #parts: WorkerParts;
  readonly #claimer: Claimer;
  readonly #outbox: Outbox;
  readonly #reporter: Reporter;
  readonly #threads = new Threads();
  readonly #unreadable = new UnreadableJobs();
  readonly #runnerParts: RunnerParts;
  /** Claims of this process until their outcome is written, by job id. */
  readonly #held = new Map<string, Held>();
  /** Handlers that have not settled. */
  readonly #running = new Set<Held>();
  #heartbeat: Heartbeat | null = null;
  #loop: Promise<void> | null = null;
  #unsubscribe: (() => Promise<void>) | null = null;
  #cancelWatch: (() => void) | null = null;
  #stopping = false;
  #onIdle: (() => void) | null = null;

  constructor(parts: WorkerParts) {
    this.#parts = parts;
    const { store, claimer, runtime, settings, emit } = parts;
    const onReportError = (error: unknown): void => emit("error", { error, during: "reporting progress" });
    this.#reporter = new Reporter(store, claimer, runtime.clock, onReportError);
    this.#outbox = new Outbox(this.#written, this.#reporter);
    this.#claimer = new Claimer({
      ...parts,
      names: claimNames(parts.definitions),
      slots: {
        running: () => this.#running.size,
        runningIn: (queue) => [...this.#running].filter((held) => held.job.queue === queue).length,
      },
      outbox: this.#outbox,
      onClaimed: this.#claimed,
      onGivenUp: this.#givenUp,
    });
    this.#runnerParts = {
      namespace: settings.namespace,
      claimer,
      store,
      runtime,
      reporter: this.#reporter,
      threads: this.#threads,
      jobs: parts.jobs,
      maxResultBytes: settings.maxInputBytes,
      inbox: store.capabilities.transactions ? null : settings.inbox,
      onProgress: (held, value) => emit("progress", { job: held.job, value }),
    };
  }

  get active(): number {
    return this.#running.size;
  }

  async start(): Promise<void> {
    this.#heartbeat = await this.#startHeartbeat();
    this.#unsubscribe = await this.#parts.store.subscribe(this.#notice);
    this.#watch();
    this.#loop = this.#claimer.run();
  }

  /**
   * Takes no new jobs, gives back what has not started, lets handlers finish for up to `timeoutMs` while their leases are kept,
   * then fires their signals; writes every outcome before it resolves.
   */
  async stop(timeoutMs: number): Promise<void> {
    const { clock } = this.#parts.runtime;
    this.#stopping = true;
    this.#claimer.stopClaiming();
    await this.#idle(timeoutMs);
    for (const held of this.#running) held.stop("shutdown", "the process is stopping");
    await this.#idle(shutdownGraceMs);
    for (const held of this.#running) this.#record(held, abandoned(held.job, this.#parts.settings.leaseMs));
    this.#claimer.end(false);
    // Beyond the lease there is nothing left to defend: whoever reaped the jobs has them now.
    const cancel = clock.after(this.#parts.settings.leaseMs, () => this.#claimer.end(true));
    await this.#loop;
    cancel();
    this.#cancelWatch?.();
    await this.#unsubscribe?.();
    await this.#heartbeat?.stop();
    await this.#threads.stop();
  }

  // ── From the claimer ──

  readonly #claimed = (jobs: readonly ClaimedJob[], sentAtMs: number): void => {
    const { clock } = this.#parts.runtime;
    const { leaseMs } = this.#parts.settings;
    const started: Held[] = [];
    for (const job of jobs) {
      const definition = this.#parts.definitions.get(job.name);
      const known = this.#held.get(job.id);
      // A repeated answer brings back what is already here: each (id, token) starts once.
      if (definition === undefined || known?.job.token === job.token) continue;
      known?.stop("lease-lost", "the lease ran out and the job was claimed again");
      const held = new Held(job, definition, clock.monotonic(), sentAtMs + leaseMs);
      this.#held.set(job.id, held);
      if (this.#mayStart(held)) started.push(held);
      else this.#record(held, released);
    }
    // The heartbeat must know them before a handler can block the loop.
    if (started.length > 0) this.#keep(started.map(asRenewal));
    for (const held of started) this.#start(held);
  };

  /** A claim whose answer came too late to be renewed in time is not started: its handler would be stopped at once. It was not dispatched, so it may go back. */
  #mayStart(held: Held): boolean {
    const { runtime, settings } = this.#parts;
    const latestMs = held.safeUntilMs - startingMarginMs(settings.leaseMs, settings.heartbeatMs);
    return !this.#stopping && runtime.clock.monotonic() <= latestMs && !held.job.cancelRequested;
  }

  #start(held: Held): void {
    this.#running.add(held);
    this.#parts.emit("started", { job: held.job });
    const cancelWatch = this.#watchTimeout(held);
    // A runner that fails by itself is treated as its handler's failure: it must not end the process and all its neighbours.
    const failed = (error: unknown): Run => ({ kind: "ended", ending: { kind: "threw", error } });
    void runJob(held, this.#runnerParts)
      .catch(failed)
      .then((run) => {
        cancelWatch();
        this.#ended(held, run);
      });
  }

  #ended(held: Held, run: Run): void {
    this.#running.delete(held);
    if (!held.recorded) this.#conclude(held, run);
    if (this.#running.size === 0) this.#onIdle?.();
    this.#claimer.settled(held.job.id);
  }

  #conclude(held: Held, run: Run): void {
    const { emit, log } = this.#parts;
    if (run.kind === "ended") {
      this.#warnWithoutEffect(held, run.ending);
      return this.#record(held, this.#decide(held, run.ending));
    }
    held.recorded = true;
    this.#forget(held);
    if (run.late !== null) {
      log.warn(
        { job: held.job.id, error: recordError(run.late) },
        "a handler failed after its tx had committed: the job has succeeded",
      );
    }
    if (run.success !== null) warnNotKept(log, held.job, run.success);
    emit("succeeded", { job: held.job, result: run.value, ms: this.#sinceStart(held) });
  }

  /** An effectively-once handler that never called tx has nothing that is protected from happening twice; that is told once. */
  #warnWithoutEffect({ job, definition }: Held, ending: Ending): void {
    const withTransaction = this.#parts.store.capabilities.transactions;
    if (definition.delivery !== "effectively-once" || ending.kind !== "returned" || !withTransaction) return;
    if (ending.value instanceof Snooze || this.#warned.has(definition.name)) return;
    this.#warned.add(definition.name);
    this.#parts.log.warn(
      { job: job.id, name: definition.name },
      "an effectively-once handler ended without calling tx: what it did may happen again after a crash",
    );
  }

  readonly #warned = new Set<string>();

  #decide(held: Held, ending: Ending): Outcome {
    const { settings, runtime } = this.#parts;
    if (ending.kind === "unreadable")
      return this.#unreadable.outcomeOf(held.job, ending.error, runtime.clock.monotonic());
    return decideOutcome(
      ending,
      held.stopCause,
      held.job,
      held.definition,
      runtime.random(),
      settings.maxInputBytes,
    );
  }

  #record(held: Held, outcome: Outcome): void {
    if (held.recorded) return;
    held.recorded = true;
    this.#outbox.add(held, outcome);
    this.#claimer.settled(held.job.id);
  }

  /** A handler that does not settle after its timeout keeps its slot, but not its job: the failure is recorded all the same. */
  #watchTimeout(held: Held): () => void {
    const { runtime, settings, log } = this.#parts;
    const { timeoutMs } = held.definition;
    if (timeoutMs === null) return () => {};
    return runtime.clock.after(timeoutMs + settings.leaseMs, () => {
      if (held.recorded) return;
      const { id, name } = held.job;
      log.warn(
        { job: id, name },
        "a handler has not settled a lease after its timeout; it keeps its slot, the job has failed",
      );
      // Whatever else it was told before, it is a timeout that ends it: it has not returned.
      held.stopCause = "timeout";
      this.#record(held, this.#decide(held, { kind: "returned", value: undefined }));
    });
  }

  // ── From the outbox ──

  readonly #givenUp = (held: Held): void => {
    this.#forget(held);
    const { id, name } = held.job;
    this.#parts.log.error(
      { job: id, name },
      "the store cannot take what became of this job; its lease will run out",
    );
  };

  readonly #written = (held: Held, outcome: Outcome, result: FinishResult): void => {
    this.#forget(held);
    if (result.state === "succeeded") warnNotKept(this.#parts.log, held.job, outcome);
    announce(this.#parts.emit, held.job, outcome, result, this.#sinceStart(held));
  };

  #forget(held: Held): void {
    if (this.#held.get(held.job.id) === held) this.#held.delete(held.job.id);
    this.#dropped.push({ id: held.job.id, token: held.job.token });
    if (this.#dropped.length > 1) return;
    // Gathered, because a trip settles many at once; where it also brings new ones, one message tells both.
    this.#parts.runtime.clock.defer(() => {
      if (this.#dropped.length > 0) this.#keep([]);
    });
  }

  #keep(renewals: readonly Renewal[]): void {
    const dropped = this.#dropped;
    this.#dropped = [];
    this.#heartbeat?.keep(renewals, dropped);
  }

  #dropped: ClaimRef[] = [];

  #sinceStart(held: Held): number {
    return this.#parts.runtime.clock.monotonic() - held.startedAtMs;
  }

  // ── From the heartbeat and the store's notices ──

  async #startHeartbeat(): Promise<Heartbeat> {
    const { store, settings, runtime, log } = this.#parts;
    const { address } = store;
    // A clock of one's own means a simulation, in which everything happens in one thread.
    if (runtime.clock !== systemClock) return this.#beatInLoop();
    const own =
      address &&
      (await threadHeartbeat({
        ...this.#heartbeatParts(),
        address,
        namespace: settings.namespace,
        log,
        onGone: () => {
          this.#heartbeat = this.#beatInLoop();
          this.#keep([...this.#held.values()].map(asRenewal));
        },
      }));
    return own ?? this.#beatInLoop();
  }

  #beatInLoop(): Heartbeat {
    const { store, runtime, log } = this.#parts;
    // Expected of a store that only this process can reach; elsewhere the thread has failed.
    if (runtime.clock === systemClock)
      log[store.address === null ? "debug" : "warn"](
        {},
        "leases are renewed from the main loop: a handler that blocks it for longer than the lease loses its job",
      );
    return loopHeartbeat({ ...this.#heartbeatParts(), store, random: runtime.random });
  }

  #heartbeatParts() {
    const { claimer, settings, runtime, emit } = this.#parts;
    return {
      claimer,
      leaseMs: settings.leaseMs,
      heartbeatMs: settings.heartbeatMs,
      clock: runtime.clock,
      onRenewed: this.#renewed,
      onStale: (claims: readonly ClaimRef[]) =>
        this.#stopEach(claims.filter(this.#mayBeLost), "lease-lost", "the lease ran out"),
      onCancel: this.#cancelled,
      onError: (error: unknown) => emit("error", { error, during: "renewing leases" }),
    } as const;
  }

  readonly #renewed = (claims: readonly ClaimRef[], sentAtMs: number): void => {
    const { leaseMs } = this.#parts.settings;
    for (const { id, token } of claims) {
      const held = this.#held.get(id);
      if (held?.job.token === token) held.safeUntilMs = Math.max(held.safeUntilMs, sentAtMs + leaseMs);
    }
  };

  /** Not while its `tx`, or its outcome, may have ended the claim; should that fail after all, the watch stops the handler in time. */
  readonly #mayBeLost = ({ id }: ClaimRef): boolean => this.#held.get(id)?.isUnderWay === true;

  #stopEach(claims: readonly ClaimRef[], cause: "lease-lost" | "cancelled", message: string): void {
    for (const { id, token } of claims) {
      const held = this.#held.get(id);
      if (held?.job.token !== token || !held.stop(cause, message)) continue;
      if (cause === "lease-lost") this.#parts.emit("leaseLost", { job: held.job });
    }
  }

  readonly #cancelled = (claims: readonly ClaimRef[]): void =>
    this.#stopEach(claims, "cancelled", "the job was cancelled");

  readonly #notice = (notice: Notice): void => {
    if (notice.kind === "jobs" || notice.kind === "queues" || notice.kind === "ended") this.#claimer.hungry();
    if (notice.kind === "cancel")
      void cancelledAmong(this.#parts.store, this.#held, notice.ids).then(this.#cancelled);
  };

  /** Stops handlers whose lease could not be renewed, before it ends: afterwards somebody else may run them. */
  #watch(): void {
    const { runtime, settings, emit } = this.#parts;
    const nowMs = runtime.clock.monotonic();
    this.#heartbeat?.pulse();
    for (const held of this.#running) {
      const renewedAtMs = this.#heartbeat?.renewedAtMs(held.startedAtMs) ?? null;
      if (renewedAtMs !== null) held.safeUntilMs = Math.max(held.safeUntilMs, renewedAtMs + settings.leaseMs);
      if (held.transaction === "committed" || nowMs < held.safeUntilMs - safetyMarginMs(settings.leaseMs))
        continue;
      if (held.stop("lease-lost", "the lease could not be renewed in time"))
        emit("leaseLost", { job: held.job });
    }
    this.#cancelWatch = runtime.clock.after(settings.leaseMs / 10, () => this.#watch());
  }

  #idle(timeoutMs: number): Promise<void> {
    if (this.#running.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        cancel();
        this.#onIdle = null;
        resolve();
      };
      const cancel = this.#parts.runtime.clock.after(timeoutMs, done);
      this.#onIdle = done;
    });
  }
}
